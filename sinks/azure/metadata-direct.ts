/**
 * The SDKs send everything through the proxy that the environment names, requests to the metadata service of this machine too, which answers
 * nobody else; the one way to tell them is NO_PROXY, read when the first of their pipelines is made. So this comes before any of them.
 *
 * Source: https://learn.microsoft.com/azure/virtual-machines/instance-metadata-service#proxies
 */
export function keepMetadataDirect(env: NodeJS.ProcessEnv): void {
  const metadata = '169.254.169.254'
  const name = env['NO_PROXY'] === undefined && env['no_proxy'] !== undefined ? 'no_proxy' : 'NO_PROXY'
  const listed = env[name]?.split(',').map((entry) => entry.trim()) ?? []
  if (!listed.includes(metadata)) env[name] = [...listed.filter((entry) => entry !== ''), metadata].join(',')
}
