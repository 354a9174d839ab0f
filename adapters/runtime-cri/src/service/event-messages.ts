import { type ContainerRuntime, RuntimeError, type RuntimeEvent } from '@keelson/container-runtime';
import { ContainerEventResponse } from '../api/stats.ts';
import type { Fields } from '../wire/message.ts';
import { toSandboxStatus } from './convert/to-sandbox.ts';

type EventMessage = Fields<typeof ContainerEventResponse>;
type Change = Exclude<RuntimeEvent, { type: 'resync' }>;

/**
 * The protocol has no events of sandboxes: what happens to one is told under its id, as of the container that holds it
 * open.
 */
const numbers: Readonly<Record<Change['type'], number>> = {
  containerCreated: 0,
  containerStarted: 1,
  containerExited: 2,
  containerRemoved: 3,
  sandboxReady: 1,
  sandboxNotReady: 2,
  sandboxRemoved: 3,
};

/**
 * What the engine tells, as the protocol has it. The protocol has no word for events that were lost, so the stream then
 * fails, and whoever opens it anew lists again.
 *
 * @throws `Unsupported` for an engine without events, `Unavailable`
 */
export async function* eventMessages(runtime: ContainerRuntime, signal: AbortSignal): AsyncIterable<Buffer> {
  if (runtime.events === undefined)
    throw new RuntimeError('Unsupported', `the runtime ${runtime.name} tells no events`);
  let begun = false;
  for await (const event of runtime.events({ signal })) {
    if (event.type !== 'resync') yield ContainerEventResponse.encode(await messageOf(runtime, event, signal));
    else if (begun) throw new RuntimeError('Unavailable', 'events were lost');
    begun = true;
  }
}

async function messageOf(runtime: ContainerRuntime, event: Change, signal: AbortSignal): Promise<EventMessage> {
  const { type, sandboxId, at } = event;
  // By now it may be gone; its id is known in any case.
  const status = await runtime.podSandboxStatus(sandboxId, { signal }).catch(() => undefined);
  return {
    containerId: 'containerId' in event ? event.containerId : sandboxId,
    containerEventType: numbers[type],
    createdAt: at,
    podSandboxStatus: status === undefined ? { id: sandboxId } : toSandboxStatus(status),
  };
}
