import type { EngineEvent } from '../api/documents.ts';
import type { ContainerReader } from '../containers/container-reader.ts';
import type { ContainerWaits } from '../containers/container-waits.ts';
import { labelFilter, recordOf } from '../model/records.ts';
import { sandboxState, stateOf } from '../model/status.ts';
import type { EngineSandboxes } from '../sandboxes/engine-sandboxes.ts';
import type { Surroundings } from '../surroundings.ts';
import { EventSource } from './event-source.ts';
import type { Stage } from './life-tracker.ts';

/** How long an engine may take from telling an exit to knowing it. */
const exitLimitMs = 10_000;

export interface WatchParts {
  readonly around: Surroundings;
  readonly reader: ContainerReader;
  readonly waits: ContainerWaits;
  readonly sandboxes: EngineSandboxes;
}

/**
 * Listens to the engine and takes care of what is there when the connection is made: logs of running containers are
 * copied on.
 */
export function watchEngine(parts: WatchParts): EventSource {
  const { around } = parts;
  let first = true;
  return new EventSource({
    ...{ http: around.http, clock: around.clock, logger: around.logger, filters: labelFilter(around.owner) },
    onEvent: (event) => take(parts, event),
    onConnected: async () => {
      await around.link.ask();
      await adopt(parts, first);
      first = false;
      around.feed.resync();
    },
    onLost: () => around.feed.fail('the container engine does not answer'),
  });
}

async function adopt({ around, reader, sandboxes }: WatchParts, first: boolean): Promise<void> {
  const { tracker, records } = around;
  const [pods, containers] = await Promise.all([sandboxes.entries(), reader.entries()]);
  if (first) {
    // What went while no runtime ran.
    records.keepOnly(new Set([...pods, ...containers].map(({ Id }) => Id)));
    await around.options.network?.sweep(new Set(pods.map(({ Id }) => Id)));
  }
  for (const { Id, State } of pods) tracker.begin(Id, sandboxState(State) === 'ready' ? 'running' : 'ended');
  const stages: Readonly<Record<string, Stage>> = { created: 'created', running: 'running', exited: 'ended' };
  for (const { Id, State } of containers) tracker.begin(Id, stages[stateOf(State, records.get(Id))] ?? 'created');
  await Promise.all(
    containers.map(async ({ Id, State, Labels }) => {
      const record = recordOf(Labels);
      const follows = record?.kind === 'container' && record.logPath !== undefined && !around.logs.isComplete(Id);
      // Looking for it is enough: that begins to copy its log, or ends it.
      if (follows && stateOf(State, records.get(Id)) !== 'created') await reader.lookFor(Id);
    }),
  );
}

function take({ around, reader, waits }: WatchParts, { Action, Actor }: EngineEvent): void {
  const { tracker } = around;
  const record = recordOf(Actor.Attributes);
  if (record === undefined) return;
  const id = Actor.ID;
  if (record.kind === 'sandbox') {
    // That it is ready is told by who made it: it takes more than its start.
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
  // The look that finds it exited tells the exit.
  const look = async () => (await reader.lookFor(id))?.state !== 'running';
  waits.until(id, look, exitLimitMs, undefined).catch((err: unknown) => {
    around.logger.debug('cannot look at a container that exited', { container: id, err });
  });
}
