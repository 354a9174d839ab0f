import type { EngineEvent } from '../api/documents.ts';
import type { ContainerReader } from '../containers/container-reader.ts';
import type { ContainerWaits } from '../containers/container-waits.ts';
import type { EngineContext } from '../containers/engine-context.ts';
import type { Stage } from '../containers/life-tracker.ts';
import { labelFilter, recordOf } from '../model/records.ts';
import { sandboxState, stateOf } from '../model/status.ts';
import type { EngineSandboxes } from '../sandboxes/engine-sandboxes.ts';
import { EventSource } from './event-source.ts';

/** Longest time between the exit event of an engine and the change of the reported state. */
const exitLimitMs = 10_000;

export interface WatchParts {
  readonly context: EngineContext;
  readonly reader: ContainerReader;
  readonly waits: ContainerWaits;
  readonly sandboxes: EngineSandboxes;
}

/**
 * Watches the event stream of the engine. After every connect it also adopts the existing containers: copying of the
 * logs of running containers continues.
 */
export function watchEngine(parts: WatchParts): EventSource {
  const { context } = parts;
  let first = true;
  return new EventSource({
    ...{ http: context.http, clock: context.clock, logger: context.logger, filters: labelFilter(context.owner) },
    onEvent: (event) => handleEvent(parts, event),
    onConnected: async () => {
      await context.link.refresh();
      await adopt(parts, first);
      first = false;
      context.feed.resync();
    },
    onDisconnected: () => context.feed.fail('the container engine does not respond'),
  });
}

async function adopt({ context, reader, sandboxes }: WatchParts, first: boolean): Promise<void> {
  const { tracker, records } = context;
  const [pods, containers] = await Promise.all([sandboxes.entries(), reader.entries()]);
  if (first) {
    // Removes the records and networks of sandboxes that were removed while no runtime ran.
    records.keepOnly(new Set([...pods, ...containers].map(({ Id }) => Id)));
    await context.options.network?.sweep(new Set(pods.map(({ Id }) => Id)));
  }
  for (const { Id, State } of pods) tracker.begin(Id, sandboxState(State) === 'ready' ? 'running' : 'ended');
  const stages: Readonly<Record<string, Stage>> = { created: 'created', running: 'running', exited: 'ended' };
  for (const { Id, State } of containers) tracker.begin(Id, stages[stateOf(State, records.get(Id))] ?? 'created');
  await Promise.all(
    containers.map(async ({ Id, State, Labels }) => {
      const record = recordOf(Labels);
      const follows = record?.kind === 'container' && record.logPath !== undefined && !context.logs.isComplete(Id);
      // Reading the status of a container also starts the copying of its log, or completes it after the exit.
      if (follows && stateOf(State, records.get(Id)) !== 'created') await reader.findIfPresent(Id);
    }),
  );
}

function handleEvent({ context, reader, waits }: WatchParts, { Action, Actor }: EngineEvent): void {
  const { tracker } = context;
  const record = recordOf(Actor.Attributes);
  if (record === undefined) return;
  const id = Actor.ID;
  if (record.kind === 'sandbox') {
    // A start event is ignored, because a started sandbox may not have a network yet; the call that creates the sandbox
    // reports its readiness.
    if (Action === 'die' && tracker.stageOf(id) === 'running') tracker.sandbox(id, 'ended');
    if (Action === 'destroy' || Action === 'remove') {
      if (tracker.stageOf(id) === 'running') tracker.sandbox(id, 'ended');
      tracker.sandbox(id, 'removed');
    }
    return;
  }
  const { sandboxId } = record;
  if (Action === 'create') tracker.container(id, sandboxId, 'created');
  if (Action === 'start') tracker.container(id, sandboxId, 'running');
  if (Action === 'destroy' || Action === 'remove') {
    if (tracker.stageOf(id) === 'running') tracker.container(id, sandboxId, 'ended');
    tracker.container(id, sandboxId, 'removed');
  }
  if (Action !== 'die') return;
  waits.wake(id);
  // Reading an exited container publishes the exit.
  const hasEnded = async () => (await reader.findIfPresent(id))?.state !== 'running';
  waits.until(id, hasEnded, exitLimitMs, undefined).catch((err: unknown) => {
    context.logger.debug('cannot inspect an exited container', { container: id, err });
  });
}
