import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { loadTemplate, templateSchema } from '../../../sinks/webhook/template.ts'
import { everyEvent } from '../../events/every-event.ts'
import { arrivedFromHttp, arrivedFromJson } from '../../support/arrived.ts'
import { largeEvent, sampleEvent } from '../../support/sample-event.ts'

const options = {
  'event-grid': 'event-grid',
  pagerduty: { name: 'pagerduty', values: { routingKey: 'R0UTINGKEY' } },
  slack: 'slack',
  'splunk-hec': 'splunk-hec',
  teams: 'teams',
}
const load = (option: unknown): ReturnType<typeof loadTemplate> => loadTemplate(templateSchema.parse(option))

describe('the templates that ship', () => {
  it('are those in config/templates, each with a word on its use', async () => {
    const files = await readdir(join(import.meta.dirname, '../../../config/templates'))
    expect(files.map((file) => file.replace('.json', ''))).toEqual(Object.keys(options))
  })

  describe.each(Object.entries(options))('%s', (name, option) => {
    it.each(everyEvent())('of an event that is %s is as agreed (`vitest run THIS_FILE --update` writes it)', async (kind, event) => {
      const body = await (await load(option)).write(event)
      await expect(`${JSON.stringify(JSON.parse(body), null, 2)}\n`).toMatchFileSnapshot(`../../golden/template-${name}/${kind}.json`)
    })

    it('writes JSON whatever the event holds', async () => {
      const template = await load(option)
      const hostile = '"}],\\ \n{{ values.routingKey }} {% raw %} <!channel> \u2028 \0 😀 \ud800'
      const event = sampleEvent(1, {
        data: { eventId: hostile, eventType: hostile, resources: [hostile], description: hostile, notBefore: hostile },
      })
      for (const each of [event, sampleEvent(1, { data: {} }), largeEvent(1)]) {
        const body = await template.write(each)
        expect(JSON.parse(body)).toEqual(expect.any(Object))
        // A text of the event is never a template itself.
        expect(body.split('R0UTINGKEY').length).toBeLessThanOrEqual(2)
      }
    })
  })

  it('event-grid is a CloudEvent like any other', async () => {
    const { contentType, write } = await load('event-grid')
    expect(arrivedFromHttp({ 'content-type': contentType }, await write(sampleEvent(1)))).toEqual(arrivedFromJson(sampleEvent(1)))
  })

  it('pagerduty opens one incident for an event and closes it', async () => {
    const { write } = await load(options.pagerduty)
    const actions = z.object({
      event_action: z.string(),
      dedup_key: z.string(),
      payload: z.object({ severity: z.enum(['critical', 'error', 'warning', 'info']) }),
    })
    const told = await Promise.all(
      everyEvent().map(async ([kind, event]) => [kind, actions.parse(JSON.parse(await write(event)))] as const),
    )
    const byKind = Object.fromEntries(told.map(([kind, { event_action }]) => [kind, event_action]))
    expect(byKind).toMatchObject({
      scheduled: 'trigger',
      started: 'trigger',
      completed: 'resolve',
      cancelled: 'resolve',
      vanished: 'resolve',
      heartbeat: 'resolve',
      'imds-unreachable': 'trigger',
    })
    const keys = told.filter(([kind]) => ['scheduled', 'started', 'completed'].includes(kind)).map(([, { dedup_key }]) => dedup_key)
    expect(new Set(keys).size).toBe(1)
    expect(keys[0]?.length).toBeLessThan(256)
  })

  it('keep to the lengths that Slack, Teams and PagerDuty allow', async () => {
    const resources = Array.from({ length: 1500 }, (_, index) => `machine-with-a-long-name_${index}`)
    const event = sampleEvent(1, { data: { eventType: 'Reboot', resources, description: 'x'.repeat(4096), eventSource: 'Platform' } })
    const slack = z.object({ blocks: z.array(z.object({ fields: z.array(z.object({ text: z.string().max(2000) })).optional() })) })
    expect(slack.safeParse(JSON.parse(await (await load('slack')).write(event))).success).toBe(true)
    expect((await (await load('teams')).write(event)).length).toBeLessThan(28 * 1024)
    const pager = z.object({ payload: z.object({ summary: z.string().max(1024) }) })
    expect(pager.safeParse(JSON.parse(await (await load(options.pagerduty)).write(event))).success).toBe(true)
  })
})

describe('a template of the operator', () => {
  let folder = ''
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'foreshock-template-'))
  })
  afterAll(() => rm(folder, { recursive: true }))

  const file = async (text: string, name = 'mine.yaml'): Promise<string> => {
    await writeFile(join(folder, name), text)
    return join(folder, name)
  }

  it('is YAML or JSON; a text that is one expression becomes the value itself', async () => {
    const yaml = await load(
      await file(
        'body: { text: "{{ data.eventType }} {{ status }}", number: "{{ epoch }}", all: "{{ data }}", none: "{{ data.notBefore }}", kept: 7 }',
      ),
    )
    expect(yaml.contentType).toBe('application/json')
    expect(JSON.parse(await yaml.write(sampleEvent(1)))).toEqual({
      text: 'Reboot scheduled',
      number: 1_772_366_400.25,
      all: { ...sampleEvent(1).data },
      none: null,
      kept: 7,
    })
    const json = await load(await file('{"body": ["{{ event.id | upcase }}", true]}', 'mine.json'))
    expect(JSON.parse(await json.write(sampleEvent(1)))).toEqual([sampleEvent(1).id.toUpperCase(), true])
  })

  it('may be plain text', async () => {
    const template = await load(
      await file('contentType: text/plain; charset=utf-8\nbody: "{{ data.eventType }}: {{ data.resources | join }}\\n"'),
    )
    expect(template.contentType).toBe('text/plain; charset=utf-8')
    expect(await template.write(sampleEvent(1))).toBe('Reboot: web_0 Größe € 😀 "q" 100%\n')
  })

  it('gets values, from files too, read anew for each event', async () => {
    const secret = await file('one\n', 'secret')
    const path = await file('values: { key: a key }\nbody: { key: "{{ values.key }}" }')
    const template = await load({ name: path, values: { key: { file: secret } } })
    expect(await template.write(sampleEvent(1))).toBe('{"key":"one"}')
    await file('two\n', 'secret')
    expect(await template.write(sampleEvent(1))).toBe('{"key":"two"}')
  })

  const broken: [string, string, RegExp][] = [
    ['is no YAML', 'body: [', /cannot be read/],
    ['has no body', 'text: hello', /is not .*body/],
    ['is not Liquid', 'body: "{{ data.eventType"', /cannot be filled in.*not closed/],
    ['uses a filter that there is not', 'body: "{{ data | shell }}"', /undefined filter: shell/],
    ['asks for a value that it was not given', 'values: { routingKey: the key }\nbody: {}', /needs the value routingKey \(the key\)/],
  ]
  it.each(broken)('that %s is told when the sink is opened', async (_, text, message) => {
    const path = await file(text)
    const opened = load(path).then((template) => template.write(sampleEvent(1)))
    await expect(opened).rejects.toMatchObject({ code: 'sink_unusable', message: expect.stringMatching(message) })
  })

  it('that is not there is told', async () => {
    await expect(load(join(folder, 'missing.yaml'))).rejects.toMatchObject({ message: expect.stringContaining('ENOENT') })
  })

  it.each(["{% include '/etc/passwd' %}", "{% render 'secret' %}", "{% layout 'secret' %}"])('cannot read files: %s', async (text) => {
    await file('hunter2', 'secret')
    const template = load(await file(`body: ${JSON.stringify(text)}`))
    await expect(template.then(({ write }) => write(sampleEvent(1)))).rejects.toMatchObject({ code: 'sink_unusable' })
  })

  it.each([
    '{{ event.constructor }}',
    '{{ data.__proto__ }}',
    '{{ event.toString }}',
    '{{ process }}',
    '{{ data.constructor.constructor }}',
  ])('sees nothing but the event: %s', async (text) => {
    const template = await load(await file(`body: [${JSON.stringify(text)}]`))
    expect(await template.write(sampleEvent(1))).toBe('[null]')
  })

  it('that never ends is stopped', async () => {
    const loop = '{% for a in (1..9999999) %}{% for b in (1..9999999) %}{{ a | append: b }}{% endfor %}{% endfor %}'
    const template = await load(await file(`body: ${JSON.stringify(loop)}`))
    await expect(template.write(sampleEvent(1))).rejects.toMatchObject({ code: 'sink_unusable', message: expect.stringContaining('limit') })
  })
})

describe('the option `template`', () => {
  it.each([
    'slack',
    './mine.yaml',
    '/etc/foreshock/mine.json',
    { name: 'slack' },
    { name: 'pagerduty', values: { routingKey: { file: '/x' } } },
  ])('may be %j', (option) => expect(templateSchema.safeParse(option).success).toBe(true))
  it.each(['slak', '', 7, { name: 'slack', secrets: {} }])('may not be %j', (option) => {
    expect(templateSchema.safeParse(option).success).toBe(false)
  })
})
