/** The value below which `share` of the samples lie; the samples need no order. */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = samples.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

export interface BenchRow {
  readonly what: string
  readonly foreshock: number
  readonly bare: number
  readonly unit: string
}

export function print(rows: readonly BenchRow[]): void {
  const cells = rows.map(({ what, foreshock, bare, unit }) => [
    what,
    `${foreshock.toFixed(2)} ${unit}`,
    `${bare.toFixed(2)} ${unit}`,
    `${(foreshock - bare).toFixed(2)} ${unit}`,
    (foreshock / bare).toFixed(2),
  ])
  const lines = [['measured', 'foreshock', 'bare', 'difference', 'ratio'], ...cells]
  const widths = lines[0]?.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0))) ?? []
  for (const line of lines)
    console.log(
      line.map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0))).join('  '),
    )
}
