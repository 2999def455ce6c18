import { LineCounter, parseDocument, visit, type Document, type ErrorCode } from 'yaml'

type Yaml = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly mistakes: readonly string[] }

/**
 * Reads YAML, of which JSON is a part; an empty text is null. A mistake is told by its place and kind alone, one line each: the texts of the
 * parser quote the file, and there may stand a secret.
 */
export function readYaml(text: string): Yaml {
  const lineCounter = new LineCounter()
  const document = parseDocument(text, { prettyErrors: false, lineCounter, stringKeys: true, logLevel: 'error' })
  const at = (offset: number, problem: string): string => {
    const { line, col } = lineCounter.linePos(offset)
    return `line ${line}, column ${col}: ${problem}`
  }
  // What the parser only warns of loses a part of the file: a text that begins with "!" and is not quoted is taken for a tag.
  const mistakes = [...document.errors, ...document.warnings].map(({ pos: [offset], code }) => at(offset, problems[code]))
  if (mistakes.length === 0) mistakes.push(...badAliases(document).map((offset) => at(offset, problems.BAD_ALIAS)))
  if (mistakes.length > 0) return { ok: false, mistakes: [...new Set(mistakes)] }
  try {
    return { ok: true, value: document.toJS() }
  } catch (error) {
    // Of the aliases, which all have their anchors, there are too many: the yaml package throws this for want of an error of its own.
    if (!(error instanceof ReferenceError)) throw error
    return { ok: false, mistakes: [problems.RESOURCE_EXHAUSTION] }
  }
}

/** Where aliases stand that have no anchor before them, or that stand inside of what they repeat. */
function badAliases(document: Document): number[] {
  const offsets: number[] = []
  visit(document, {
    Alias(_, alias, path) {
      const target = alias.resolve(document)
      if (target === undefined || path.includes(target)) offsets.push(alias.range?.[0] ?? 0)
    },
  })
  return offsets
}

const problems: Readonly<Record<ErrorCode, string>> = {
  ALIAS_PROPS: 'an alias (*name) takes neither a tag nor an anchor: a text that begins with "*" belongs in quotes',
  BAD_ALIAS: 'expected an alias (*name) of an anchor (&name) that stands before it: a text that begins with "*" belongs in quotes',
  BAD_COLLECTION_TYPE: 'a list or an object that does not fit its tag: remove the tag',
  BAD_DIRECTIVE: 'expected no directive: a line that begins with "%" belongs in quotes',
  BAD_DQ_ESCAPE: 'an unknown escape in double quotes: write a backslash twice, or use single quotes',
  BAD_INDENT: 'wrong indentation, or a bracket that is not closed',
  BAD_PROP_ORDER: 'a tag or an anchor in the wrong place: a text that begins with "!" or "&" belongs in quotes',
  BAD_SCALAR_START: 'a text cannot begin with this character: put it in quotes',
  BLOCK_AS_IMPLICIT_KEY: 'a second ": " in one value: put the value in quotes, or begin a new line',
  BLOCK_IN_FLOW: 'a block inside of brackets: write all of it in brackets, or none',
  DUPLICATE_KEY: 'a key that this object has already: remove one of the two',
  IMPOSSIBLE: 'cannot be read',
  KEY_OVER_1024_CHARS: 'a key of more than 1024 characters',
  MISSING_CHAR: 'a quote, colon, comma, space or bracket is missing',
  MULTILINE_IMPLICIT_KEY: 'a key of more than one line: look for a ":" that is missing before it',
  MULTIPLE_ANCHORS: 'more than one anchor: a text that begins with "&" belongs in quotes',
  MULTIPLE_DOCS: 'a second document: only one is expected, remove the "---" before it',
  MULTIPLE_TAGS: 'more than one tag: a text that begins with "!" belongs in quotes',
  NON_STRING_KEY: 'a list or an object in the place of a key',
  RESOURCE_EXHAUSTION: 'too many aliases (*name), or nested too deep',
  TAB_AS_INDENT: 'a tab as indentation: use spaces',
  TAG_RESOLVE_FAILED: 'an unknown tag, or a value that does not fit its tag: a text that begins with "!" belongs in quotes',
  UNEXPECTED_TOKEN: 'something that does not belong here: a text with quotes in it belongs in quotes as a whole',
}
