import { expect, it } from 'vitest'
import { parseConfig } from '../../src/config/load.ts'

const parse = (keys: object) => parseConfig(JSON.stringify(keys), { env: {}, file: null })
const control = { queue: 'approvals', namespace: 'contoso.servicebus.windows.net', auth: { type: 'managed-identity' } }

it('nothing is approved, and nowhere listened, unless it is configured', async () => {
  expect(await parse({})).not.toHaveProperty('approvals')
  expect(await parse({})).not.toHaveProperty('control')
})

it('what is left out is careful: own events of one machine, the types that it survives, whoever may send', async () => {
  expect(await parse({ approvals: {}, control })).toMatchObject({
    approvals: { events: 'own', leaderOnly: false, maxResources: 1, eventTypes: ['Freeze', 'Reboot', 'Redeploy'], auto: [] },
    control: { session: 'none', trust: { type: 'rbac' }, maxDeliveryCount: 10 },
  })
})

it('one word or a list of them: a condition takes both', async () => {
  const { approvals } = await parse({ approvals: { auto: [{ when: { eventType: 'Freeze', eventSource: ['User', 'Platform'] } }] } })
  expect(approvals?.auto[0]?.when).toMatchObject({ eventType: ['Freeze'], eventSource: ['User', 'Platform'] })
})

it.each([
  [{ approvals: { auto: [{ when: {} }] } }, /approvals\.auto\[0\]\.when: .*at least one condition/],
  [
    { approvals: { auto: [{ when: { eventSource: 'User' }, after: ['siem'] }] } },
    /auto\[0\]\.after\[0\]: expected the name of a sink \(stdout\), got "siem"/,
  ],
  [
    { approvals: { auto: [{ when: { eventType: 'Preempt' } }] } },
    /when\.eventType: Preempt may not be approved: add it to approvals\.eventTypes/,
  ],
  [{ approvals: { auto: [{ when: { minNoticeSeconds: 60 }, delaySeconds: 61 }] } }, /delaySeconds: expected at most minNoticeSeconds/],
  [{ approvals: { auto: [{ when: { timeWindows: [{ from: '25:00', to: '04:00' }] } }] } }, /timeWindows\[0\]\.from: expected HH:MM/],
  [
    { approvals: { auto: [{ when: { timeWindows: [{ from: '22:00', to: '04:00', timeZone: 'Mars' }] } }] } },
    /timeZone: expected a time zone/,
  ],
  [{ control: { ...control, queue: undefined } }, /control\.queue: missing/],
  [{ control: { ...control, topic: 'approvals' } }, /control\.topic: .*both/],
  [{ control: { ...control, queue: undefined, topic: 'approvals' } }, /control\.subscription: missing/],
  [{ control: { ...control, trust: { type: 'signed' } } }, /control\.trust\.jwks: missing/],
  [{ control: { ...control, trust: { type: 'none' } } }, /control\.trust\.?.*: expected \{ type: rbac \}/],
  [{ approvals: { eventtypes: ['Freeze'] } }, /approvals\.eventtypes: unknown key/],
])('%j is told with its path', async (keys, told) => {
  await expect(parse(keys)).rejects.toThrow(told)
})
