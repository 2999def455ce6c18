import { apiVersions, type ApiVersion } from '../../imds/api-versions.ts'

/** API versions of `/metadata/instance`, oldest first, as its documentation lists them. */
export const instanceApiVersions: readonly string[] = [
  '2017-03-01',
  '2017-04-02',
  '2017-08-01',
  '2017-10-01',
  '2017-12-01',
  '2018-02-01',
  '2018-04-02',
  '2018-10-01',
  '2019-02-01',
  '2019-03-11',
  '2019-04-30',
  '2019-06-01',
  '2019-06-04',
  '2019-08-01',
  '2019-08-15',
  '2019-11-01',
  '2020-06-01',
  '2020-07-15',
  '2020-09-01',
  '2020-10-01',
  '2020-12-01',
  '2021-01-01',
  '2021-02-01',
  '2021-03-01',
  '2021-05-01',
  '2021-10-01',
  '2021-11-01',
  '2021-11-15',
  '2021-12-13',
  '2023-07-01',
  '2023-11-15',
  '2024-03-15',
  '2024-07-17',
  '2025-04-07',
]

export function isApiVersion(version: string | null): version is ApiVersion {
  return apiVersions.some((known) => known === version)
}
