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
  const readers = new Map<string, unknown>();
  const keyOf = ({ metadata: { namespace, name = '' } = {} }: KubeObject) =>
    namespace === undefined ? name : `${namespace}/${name}`;
  const read = <T extends KubeObject>(kind: KindDefinition<T>) => {
    const objects = (copies.find(([other]) => other.kind === kind.kind)?.[1] ?? []) as readonly T[];
    const isControlled = (object: T, owner: KubeObject) =>
      object.metadata?.ownerReferences?.some(({ uid, controller }) => controller && uid === owner.metadata?.uid);
    const reader = {
      get: (key: string) => objects.find((object) => keyOf(object) === key),
      list: () => [...objects],
      inNamespace: (namespace: string) => objects.filter(({ metadata }) => metadata?.namespace === namespace),
      by: (values: (object: T) => readonly string[], value: string) =>
        objects.filter((object) => values(object).includes(value)),
      controlledBy: (owner: KubeObject) => objects.filter((object) => isControlled(object, owner)),
    };
    // Controllers keep state by reader.
    if (!readers.has(kind.kind)) readers.set(kind.kind, reader);
    return readers.get(kind.kind) as ObjectReader<T>;
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

export interface RecordedWrites {
  readonly client: ApiClient;
  /** `create Pod name`, in the order of the calls. */
  readonly writes: string[];
  /** The objects that were created, and the bodies of patches. */
  readonly bodies: unknown[];
}

/**
 * A client that records writes without a server.
 *
 * @param answer called before each request; may throw its failure, or return the object of a get
 */
export function recordedWrites(answer: (request: string) => KubeObject | undefined = () => undefined): RecordedWrites {
  const writes: string[] = [];
  const bodies: unknown[] = [];
  const of = (kind: KindDefinition) => {
    const call = (verb: string, name = '', body?: unknown) => {
      const request = `${verb} ${kind.kind} ${name}`;
      const found = answer(request);
      if (verb === 'get') return found;
      writes.push(request);
      bodies.push(body);
      return body;
    };
    const objects = {
      namespace: () => objects,
      get: async (name: string) => call('get', name),
      create: async (body: KubeObject) => call('create', body.metadata?.name ?? body.metadata?.generateName, body),
      delete: async (name: string) => call('delete', name),
      patch: async (name: string, _type: string, body: unknown) => call('patch', name, body),
      update: async (body: KubeObject) => call('update', body.metadata?.name, body),
      updateSubresource: async (name: string, subresource: string, body: unknown) =>
        call(`update ${subresource} of`, name, body),
      patchSubresource: async (name: string, subresource: string, _type: string, body: unknown) =>
        call(`patch ${subresource} of`, name, body),
    };
    return objects;
  };
  return { client: { resource: of } as unknown as ApiClient, writes, bodies };
}
