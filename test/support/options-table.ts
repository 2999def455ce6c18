import { z } from 'zod'

/** The part of JSON Schema that zod writes for options. */
interface Property {
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly Property[]
  readonly oneOf?: readonly Property[]
  readonly items?: Property
  readonly properties?: Readonly<Record<string, Property>>
  readonly required?: readonly string[]
  readonly additionalProperties?: Property | boolean
  readonly default?: unknown
  readonly description?: string
}

const property: z.ZodType<Property> = z.lazy(() =>
  z.looseObject({
    type: z.string().exactOptional(),
    enum: z.array(z.unknown()).exactOptional(),
    const: z.unknown().exactOptional(),
    anyOf: z.array(property).exactOptional(),
    oneOf: z.array(property).exactOptional(),
    items: property.exactOptional(),
    properties: z.record(z.string(), property).exactOptional(),
    required: z.array(z.string()).exactOptional(),
    additionalProperties: z.union([z.boolean(), property]).exactOptional(),
    default: z.unknown().exactOptional(),
    description: z.string().exactOptional(),
  }),
)

/** The options of a sink as a Markdown table, aligned as the formatter would. */
export function optionsTable(options: z.ZodObject): string {
  const schema = property.parse(z.toJSONSchema(options, { io: 'input', unrepresentable: 'any' }))
  const rows = Object.entries(schema.properties ?? {}).map(([name, option]) => [
    `\`${name}\``,
    typeText(option),
    schema.required?.includes(name) ? 'required' : option.default === undefined ? '' : `\`${literal(option.default)}\``,
    option.description ?? '',
  ])
  return rows.length === 0 ? 'No options of its own.' : table([['option', 'type', 'default', 'meaning'], ...rows])
}

function typeText(option: Property): string {
  if (option.enum !== undefined) return option.enum.map((value) => `\`${String(value)}\``).join(', ')
  if (option.const !== undefined) return `\`${literal(option.const)}\``
  const variants = option.anyOf ?? option.oneOf
  if (variants !== undefined) return variants.map(typeText).join(' or ')
  if (option.items !== undefined) return `list of ${typeText(option.items)}`
  if (option.properties !== undefined) return `\`{ ${Object.entries(option.properties).map(keyText).join(', ')} }\``
  if (typeof option.additionalProperties === 'object') return `names with ${typeText(option.additionalProperties)}`
  return option.type ?? 'any'
}

/** The `type` of a variant with its word, other keys by their names. */
function keyText([name, option]: [string, Property]): string {
  return option.const === undefined ? name : `${name}: ${literal(option.const)}`
}

function literal(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function table(rows: readonly (readonly string[])[]): string {
  const escaped = rows.map((row) => row.map((cell) => cell.replaceAll('|', '\\|')))
  const widths = (escaped[0] ?? []).map((_, column) => Math.max(3, ...escaped.map((row) => row[column]?.length ?? 0)))
  const [head = '', ...body] = escaped.map((row) => `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`)
  return [head, `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`, ...body].join('\n')
}
