import { setImmediate } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { type AdmissionRequest, statusErrors } from '@keelson/core';
import { kindPrefix, type StoredObject } from '@keelson/core/internal';
import type { Clock } from '@keelson/core/runtime';
import { type Namespace, Pod } from '@keelson/kinds';
import { predicate, type StorageOfKind } from '../cached-objects.ts';
import { evaluate, reasonsOf } from './evaluate.ts';
import { podView } from './pod-view.ts';
import { compareLevels, type LevelVersion, policyOf } from './policy.ts';

/** Bounds on the examination of the pods in a namespace. */
const maxPods = 3000;
const maxMs = 1000;
/** Number of pods that are parsed before other requests run. */
const podsPerTurn = 50;

/**
 * Rejects labels of a namespace that cannot be read, unless they were stored before. Warns of existing pods that
 * violate a stricter level. @throws StatusError 422
 */
export function examineNamespace(
  request: AdmissionRequest,
  stores: StorageOfKind,
  clock: Clock,
): Promise<void> | undefined {
  const { kind, name, object, oldObject, context } = request;
  const { enforce, errors } = policyOf((object as Namespace).metadata?.labels);
  const old = request.operation === 'update' ? policyOf((oldObject as Namespace).metadata?.labels) : undefined;
  if (errors.length > 0 && !isDeepStrictEqual(errors, old?.errors)) throw statusErrors.invalid(kind, name, errors);
  if (old === undefined || enforce.text === old.enforce.text || enforce.level === 'privileged') return undefined;
  if (enforce.minor === old.enforce.minor && compareLevels(enforce.level, old.enforce.level) <= 0) return undefined;
  return warnings(name, enforce, stores, clock)
    .catch(() => ['failed to list pods while checking new PodSecurity enforce level'])
    .then((texts) => {
      for (const text of texts) context.warn(text);
    });
}

async function warnings(
  namespace: string,
  enforce: LevelVersion,
  stores: StorageOfKind,
  clock: Clock,
): Promise<string[]> {
  const end = clock.monotonic() + maxMs;
  const pods = await podsOf(namespace, stores);
  const violations = new Map<string, { first: string; count: number }>();
  let [parsed, checked] = [0, 0];
  for (const pod of controllersFirst(pods)) {
    if (pod !== undefined) {
      checked++;
      const reason = reasonsOf(evaluate(enforce, podView(pod.metadata?.annotations, pod.spec)));
      const name = pod.metadata?.name ?? '';
      const group = violations.get(reason);
      if (group === undefined) violations.set(reason, { first: name, count: 1 });
      else {
        group.count++;
        if (name < group.first) group.first = name;
      }
    }
    if (checked === maxPods || clock.monotonic() >= end) break;
    if (++parsed % podsPerTurn === 0) await setImmediate();
  }
  const texts: string[] = [];
  if (checked < pods.length) {
    const extent = `the first ${checked} of ${pods.length} existing pods`;
    texts.push(`new PodSecurity enforce level only checked against ${extent}`);
  }
  violations.delete('');
  if (violations.size === 0) return texts;
  texts.push(`existing pods in namespace "${namespace}" violate the new PodSecurity enforce level "${enforce.text}"`);
  const each = [...violations].map(([reason, { first, count }]) => `${first}${others(count - 1)}: ${reason}`);
  return [...texts, ...each.sort()];
}

const others = (count: number): string =>
  count === 0 ? '' : count === 1 ? ' (and 1 other pod)' : ` (and ${count} other pods)`;

async function podsOf(namespace: string, stores: StorageOfKind): Promise<readonly StoredObject[]> {
  const storage = stores.forKind(Pod);
  const prefix = `${kindPrefix(Pod)}${namespace}/`;
  const cached = storage.cached?.list(prefix);
  return cached ?? Array.from((await storage.list(prefix, { at: { at: 'any' }, predicate })).objects());
}

/**
 * Parses one pod after the other. Of the pods of a controller the first precedes and all others follow at the end,
 * because they differ little. Undefined stands for a pod that follows.
 */
function* controllersFirst(pods: readonly StoredObject[]): Generator<Pod | undefined> {
  const controllers = new Set<string>();
  const postponed: StoredObject[] = [];
  for (const stored of pods) {
    const pod = stored.value<Pod>();
    const uid = pod.metadata?.ownerReferences?.find(({ controller }) => controller)?.uid;
    const isFurther = uid !== undefined && controllers.has(uid);
    if (isFurther) postponed.push(stored);
    else if (uid !== undefined) controllers.add(uid);
    yield isFurther ? undefined : pod;
  }
  for (const stored of postponed) yield stored.value<Pod>();
}
