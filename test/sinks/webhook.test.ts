import { startHttpReceiver, type HttpReceiver } from '../support/http-receiver.ts'
import { describeSinkConformance } from '../support/sink-conformance.ts'
import webhook from '../../sinks/webhook.ts'

const healthy = (receiver: HttpReceiver): void => receiver.behave({ does: 'answer', status: 204 })

for (const mode of ['structured', 'binary'] as const) {
  describeSinkConformance<HttpReceiver>({
    definition: webhook,
    variant: mode,
    start: () => startHttpReceiver(),
    stop: (receiver) => receiver.stop(),
    options: (receiver) => ({ url: `${receiver.origin}/hook`, mode }),
    arrived: (receiver) => receiver.arrived(),
    down: { cause: (receiver) => receiver.stop(), heal: (receiver) => receiver.restart() },
    throttled: { cause: (receiver) => receiver.behave({ does: 'answer', status: 429, headers: { 'retry-after': '2' } }), heal: healthy },
    refused: { cause: (receiver) => receiver.behave({ does: 'answer', status: 404 }), heal: healthy, refusal: 'rejected' },
    hanging: { cause: (receiver) => receiver.behave({ does: 'hang' }), heal: healthy, reached: (receiver) => receiver.nextRequest() },
    checkFails: (receiver) => receiver.stop(),
  })
}
