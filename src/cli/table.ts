/** What is shown comes from outside as well: it must not move the cursor or forge a line. */
// oxlint-disable-next-line no-control-regex
const harmless = (cell: string): string => cell.replaceAll(/[\u0000-\u001F\u007F-\u009F]+/g, ' ')

/** Rows as aligned columns under upper-case headings, for people; two spaces between columns, no trailing spaces. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [headings.map((heading) => heading.toUpperCase()), ...rows.map((row) => row.map(harmless))]
  const widths = headings.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)))
  return all
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
