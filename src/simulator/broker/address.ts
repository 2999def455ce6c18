/** What a link address names, before anyone looked whether it exists. Entity names keep their spelling. */
export type Address =
  | { readonly kind: 'cbs' }
  | { readonly kind: 'management'; readonly entity: string | null }
  | { readonly kind: 'consumer'; readonly hub: string; readonly group: string; readonly partition: string }
  | { readonly kind: 'partition'; readonly hub: string; readonly partition: string }
  | { readonly kind: 'entity'; readonly path: string; readonly deadLetters: boolean }

const consumer = /^(.+)\/consumergroups\/([^/]+)\/partitions\/([^/]+)$/i
const partition = /^(.+)\/partitions\/([^/]+)$/i
const management = /^(.+)\/\$management$/i
const deadLetters = /^(.+)\/\$deadletterqueue$/i

/** Reads the address of a source or target. `{topic}/Subscriptions/{name}` stays one path. */
export function parseAddress(text: string): Address {
  const address = text.replace(/^(amqps?|sb):\/\/[^/]*\//i, '').replace(/^\/+|\/+$/g, '')
  if (address.toLowerCase() === '$cbs') return { kind: 'cbs' }
  if (address.toLowerCase() === '$management') return { kind: 'management', entity: null }
  const managed = management.exec(address)?.[1]
  if (managed !== undefined) return { kind: 'management', entity: managed }
  const [, hub, group, of] = consumer.exec(address) ?? []
  if (hub !== undefined && group !== undefined && of !== undefined) return { kind: 'consumer', hub, group, partition: of }
  const [, sendHub, to] = partition.exec(address) ?? []
  if (sendHub !== undefined && to !== undefined) return { kind: 'partition', hub: sendHub, partition: to }
  const living = deadLetters.exec(address)?.[1]
  return { kind: 'entity', path: living ?? address, deadLetters: living !== undefined }
}

/** `sb://host:5672/queue` as `queue`: the path of a token audience or address, lower-cased, without slashes at the ends. */
export function audiencePath(audience: string): string {
  return audience
    .replace(/^[a-z]+:\/\/[^/]*/i, '')
    .replace(/^\/+|\/+$/g, '')
    .toLowerCase()
}
