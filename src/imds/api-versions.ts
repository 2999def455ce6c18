/**
 * Every version of the Scheduled Events API, oldest first. They differ in what a document may hold; the first also wants the incarnation in
 * the body of a POST.
 *
 * Source: https://learn.microsoft.com/azure/virtual-machines/linux/scheduled-events
 */
export const apiVersions = ['2017-03-01', '2017-08-01', '2017-11-01', '2019-01-01', '2019-04-01', '2019-08-01', '2020-07-01'] as const

export type ApiVersion = (typeof apiVersions)[number]

export const defaultApiVersion: ApiVersion = '2020-07-01'

/** Versions of the instance metadata, in the order in which they are asked for: the newest, and one that every region has known for years. */
export const metadataApiVersions = ['2025-04-07', '2021-02-01'] as const
