import type { ObjectReader, ReconcileRun } from '@keelson/controller-kit';
import type { ApiClient, KindDefinition, KubeObject } from '@keelson/core';
import { FakeClock, silentLogger } from '@keelson/core/runtime';

export interface RecordedRun extends ReconcileRun {
  readonly clock: FakeClock;
  /** `type reason: message` of the events. */
  readonly events: string[];
}

/**
 * A run for steps that only decide: its local copies contain the given objects.
 *
 * @param client needed by steps that also write
 */
export function runOverObjects(
  copies: readonly (readonly [kind: KindDefinition, objects: readonly KubeObject[]])[],
  client: Partial<ApiClient> = {},
): RecordedRun {
  const events: string[] = [];
  const keyOf = ({ metadata }: KubeObject) => `${metadata?.namespace}/${metadata?.name}`;
  const read = <T extends KubeObject>(kind: KindDefinition<T>) => {
    const objects = (copies.find(([other]) => other.kind === kind.kind)?.[1] ?? []) as readonly T[];
    const isControlled = (object: T, owner: KubeObject) =>
      object.metadata?.ownerReferences?.some(({ uid, controller }) => controller && uid === owner.metadata?.uid);
    const reader = {
      get: (key: string) => objects.find((object) => keyOf(object) === key),
      list: () => [...objects],
      inNamespace: (namespace: string) => objects.filter(({ metadata }) => metadata?.namespace === namespace),
      controlledBy: (owner: KubeObject) => objects.filter((object) => isControlled(object, owner)),
    };
    return reader as unknown as ObjectReader<T>;
  };
  return {
    ...{
      key: 'default/object',
      client: client as ApiClient,
      clock: new FakeClock(),
      logger: silentLogger,
      read,
      events,
    },
    signal: new AbortController().signal,
    event: (_object, type, reason, message) => events.push(`${type} ${reason}: ${message}`),
  };
}
