import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { parseDocument } from '../../src/imds/document.ts'
import { markApproved } from '../../src/lifecycle/remembered.ts'
import { hours, inShort, onlyEnd, onlyState, start, Watcher } from './watcher.ts'

const read = (file: string): unknown => JSON.parse(readFileSync(new URL(`../documents/${file}`, import.meta.url), 'utf8'))
const sequenceSchema = z.array(z.object({ at: z.string().optional(), document: z.unknown() }))

/** The moments of a sequence: a time, or `T+26h` after the start. */
function moment(at: string): number {
  const after = /^T\+(\d+)h?$/.exec(at)?.[1]
  return after === undefined ? Date.parse(at) : start + Number(after) * hours
}

/** Plays a sequence with its own clock; `between` runs before each step but the first. */
function play(file: string, watcher: Watcher, between: (step: number) => void = () => {}): string[][] {
  return sequenceSchema.parse(read(file)).map(({ at, document }, step) => {
    if (step > 0) between(step)
    const after = at === undefined ? 1000 : moment(at) - watcher.at
    return watcher.accept(document, after).transitions.map(inShort)
  })
}

describe('each captured document, seen first', () => {
  it.each([
    ['r01-freeze-5min-notice-2019.json', ['xxx-xxx-xxx-xxx-xxx scheduled']],
    ['r03-freeze-started-30s-inc16.json', ['465d3b0f-d7f2-4239-ac11-1b9800e73dbc started!']],
    ['r06-freeze-scheduled-empty-description.json', ['fe88ba46-96d4-432e-8aed-89a0f0e52d99 scheduled']],
    ['r11-freeze-started-no-duration-inc208.json', ['d3d9dfec-1dca-4b49-97aa-780e02f45dfe started!']],
    ['r15-preempt-vmss-2019-08-01.json', ['51941b56-8080-45ac-81ae-8bda818f5958 scheduled']],
    ['r18-reboot-taskcluster-2017-11-01.json', ['77213da4-3ebd-4c87-970d-949767e6db59 scheduled']],
    ['r24-empty-incarnation-0.json', []],
    ['d02-ms-weekday-wrong.json', ['c7061bac-afdc-4513-b24b-aa5f13a16123 scheduled']],
    ['d03-ms-preview-iso-notbefore.json', ['602d9444-d2cd-49c7-8624-8643e7171297 scheduled']],
    ['d04-ms-property-example.json', ['602d9444-d2cd-49c7-8624-8643e7171297 scheduled']],
    ['d08-terminate-doc-shape.json', ['11111111-2222-4333-8444-555555555555 scheduled']],
    [
      'd09-webdevops-examples-no-notbefore.json',
      [
        '102d9444-d2cd-49c7-8624-8643e7171291 scheduled',
        '202d9444-d2cd-49c7-8624-8643e7171291 scheduled',
        '602d9444-d2cd-49c7-8624-8643e7171293 started!',
      ],
    ],
    ['d10-paskal-testdata.json', ['602d9444-d2cd-49c7-8624-8643e7171297 scheduled']],
    ['d12-incarnation-string-id-short.json', ['123 scheduled']],
    ['d14-no-incarnation-no-ids.json', []],
    ['d15-type-and-resources-only.json', []],
    ['d19-mock-server-scheduled-iso.json', ['0f8fad5b-d9cb-469f-a165-70867728950e scheduled']],
    ['s04-unknown-fields-and-types.json', ['55555555-6666-4777-8888-999999999999 acknowledged']],
  ])('%s', (file, expected) => {
    const watcher = new Watcher()
    const { transitions } = watcher.accept(read(file))
    expect(transitions.map((transition) => `${transition.key} ${inShort(transition)}`)).toEqual(expected)
    expect(watcher.accept(read(file))).toMatchObject({ transitions: [], anomalies: [] })
  })

  it.each([
    ['r05-event-first-seen-started.json', ['started!']],
    ['r09-underscore-resource-2017.json', ['scheduled']],
    ['r13-user-reboot-standalone-event.json', ['scheduled']],
    ['d05-maintenance-page-iso-no-id.json', []],
  ])('%s, an event alone', (file, expected) => {
    expect(new Watcher().poll(1, [read(file)]).transitions.map(inShort)).toEqual(expected)
  })

  it.each([
    'a01-approve-2020.json',
    'a02-approve-2017-string-incarnation.json',
    'a03-approve-several.json',
    'd07-eventgrid-completed-mock.json',
    'd16-playfab-camelcase.json',
    'e02-400-missing-api-version.json',
    'e05-405-lb-style.json',
    'e06-429-lb-style.json',
    'i01-instance-compute-doc.json',
    'r26-eventgrid-user-reboot-started.json',
  ])('%s says nothing about any event', (file) => {
    expect(parseDocument(read(file)).ok).toBe(false)
  })

  it('d12-incarnation-string-id-short.json: a NotBefore that is none is told raw', () => {
    expect(onlyState(new Watcher().accept(read('d12-incarnation-string-id-short.json')))).toMatchObject({
      notBefore: null,
      incarnation: 'abc123',
      event: { raw: { NotBefore: '20170702' }, unreadable: ['notBefore'] },
    })
  })
})

describe('the captured sequences', () => {
  it('d01-ms-sequence-freeze.json is the life of an event as documented', () => {
    expect(play('d01-ms-sequence-freeze.json', new Watcher())).toEqual([[], ['scheduled'], ['started'], ['completed/started']])
  })

  it('s02-incarnation-reset-sequence.json: after 26 h a lower incarnation is a new epoch', () => {
    const watcher = new Watcher()
    expect(play('s02-incarnation-reset-sequence.json', watcher)).toEqual([[], ['scheduled']])
    expect(watcher.state).toMatchObject({ epoch: 1, incarnation: 1, lowerReading: false, lastGoodPollAt: start + 26 * hours })
  })

  it('r08-sequence-inc-1-2-4.json, approved by us: completed by rule B', () => {
    const watcher = new Watcher()
    watcher.machine = { bootId: 'boot-1', vmId: 'vm-1', vmName: 'flatcar-vm1' }
    const approve = (step: number): void => {
      if (step === 2) watcher.state = markApproved(watcher.state, '4CAEA225-A741-474D-A72E-428C86FCD853')
    }
    expect(play('r08-sequence-inc-1-2-4.json', watcher, approve)).toEqual([[], ['scheduled'], ['completed/B']])
    expect(watcher.told.at(-1)).toMatchObject({ evidence: { rule: 'B', d: 2, gapSeconds: 61, bootChanged: false } })
  })

  it('r08-sequence-inc-1-2-4.json, as its neighbour saw it: vanished by rule D', () => {
    const watcher = new Watcher()
    expect(play('r08-sequence-inc-1-2-4.json', watcher)).toEqual([[], ['scheduled'], ['vanished/D']])
    expect(watcher.told.at(-1)).toMatchObject({ evidence: { rule: 'D', d: 2, gapSeconds: 61, bootChanged: false } })
  })

  it('r08-sequence-inc-1-2-4.json, where the VM booted in between: completed by rule B', () => {
    const watcher = new Watcher()
    const boot = (step: number): void => {
      watcher.machine = { bootId: step === 2 ? 'boot-2' : 'boot-1', vmId: 'vm-1', vmName: 'flatcar-vm1' }
    }
    expect(play('r08-sequence-inc-1-2-4.json', watcher, boot)).toEqual([[], ['scheduled'], ['completed/B']])
  })
})

describe('a life that is told by several captures', () => {
  it('r06-freeze-scheduled-empty-description.json on every poll is told once', () => {
    const watcher = new Watcher()
    for (let poll = 0; poll < 10; poll += 1) watcher.accept(read('r06-freeze-scheduled-empty-description.json'), 5000)
    expect(watcher.told.map(inShort)).toEqual(['scheduled'])
  })

  it('r03-freeze-started-30s-inc16.json and then nothing is completed', () => {
    const watcher = new Watcher()
    watcher.accept(read('r03-freeze-started-30s-inc16.json'))
    expect(onlyEnd(watcher.poll(17, []))).toMatchObject({ outcome: 'completed', event: { durationInSeconds: 30 } })
  })
})
