/** The parts of a connection string that decide where and what; its secrets stay in the text, which goes to the SDK as it is. */
export interface ConnectionString {
  /** Host name, or address, as it stands in `Endpoint`. */
  readonly host: string
  readonly port: number | undefined
  readonly entityPath: string | undefined
  /** `UseDevelopmentEmulator=true`: plain TCP, which the SDKs do for an emulator on this machine. */
  readonly emulator: boolean
}

/** What is wrong with the text, without showing any of it; undefined where nothing is. */
export function connectionStringProblem(text: string): string | undefined {
  const parts = partsOf(text)
  const host = hostOf(parts.get('Endpoint'))
  if (host === undefined) return 'expected a connection string that begins with Endpoint=sb://…'
  if (parts.get('SharedAccessSignature')?.startsWith('SharedAccessSignature ') === true) return undefined
  if (parts.has('SharedAccessSignature')) return 'expected SharedAccessSignature to begin with "SharedAccessSignature sr="'
  if (!parts.has('SharedAccessKeyName') || !parts.has('SharedAccessKey')) {
    return 'expected SharedAccessKeyName and SharedAccessKey, or SharedAccessSignature, in the connection string'
  }
  return undefined
}

/** Of a text that has no problem. */
export function parseConnectionString(text: string): ConnectionString | undefined {
  const parts = partsOf(text)
  const url = hostOf(parts.get('Endpoint'))
  if (url === undefined) return undefined
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? undefined : Number(url.port),
    entityPath: parts.get('EntityPath'),
    emulator: parts.get('UseDevelopmentEmulator') === 'true',
  }
}

function hostOf(endpoint: string | undefined): URL | undefined {
  const url = URL.parse(endpoint ?? '')
  return url !== null && url.protocol === 'sb:' && url.hostname !== '' ? url : undefined
}

/** Keys exactly as the SDKs read them, case included; a value may hold `=`. */
function partsOf(text: string): Map<string, string> {
  const parts = new Map<string, string>()
  for (const part of text.split(';')) {
    const at = part.indexOf('=')
    if (at > 0) parts.set(part.slice(0, at).trim(), part.slice(at + 1).trim())
  }
  return parts
}
