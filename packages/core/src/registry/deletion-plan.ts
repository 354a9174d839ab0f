import { statusErrors } from '../errors/status-error.ts';
import type { PropagationPolicy, Strategy, StrategyContext } from '../kind/strategy.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { formatTime } from '../meta/time.ts';
import type { AnyObject, ObjectMeta } from '../meta/types.ts';
import { foregroundFinalizer, orphanFinalizer } from './common-fields.ts';
import type { DeleteParameters } from './resource-service.ts';

const deleteOptions = { group: 'meta.k8s.io', kind: 'DeleteOptions' } as const;
const ignoring = (message: string) =>
  fieldError.invalid('ignoreStoreReadErrorWithClusterBreakingPotential', true, message);
/** Maximum of gracePeriodSeconds, which the OpenAPI documents of Kubernetes declare as int32. */
const maxGraceSeconds = 2 ** 31 - 1;
const policies: readonly string[] = ['Foreground', 'Background', 'Orphan'];

/**
 * Checks the options of a delete: see docs/reference/api-rules.md#options-of-a-delete. @throws StatusError 422 of kind
 * DeleteOptions.
 */
export function checkDeleteParameters(parameters: DeleteParameters, collection = false): void {
  const { orphanDependents, propagationPolicy: policy, gracePeriodSeconds: grace } = parameters;
  const problems: FieldError[] = [];
  if (grace !== undefined && grace > maxGraceSeconds) {
    problems.push(fieldError.invalid('gracePeriodSeconds', grace, `must be less than or equal to ${maxGraceSeconds}`));
  }
  if (policy !== undefined && !policies.includes(policy)) {
    problems.push(fieldError.notSupported('propagationPolicy', policy, policies));
  }
  if (policy !== undefined && orphanDependents !== undefined) {
    problems.push(fieldError.invalid('propagationPolicy', policy, 'cannot be combined with orphanDependents'));
  }
  if (parameters.ignoreStoreReadErrorWithClusterBreakingPotential) {
    if (collection)
      problems.push(ignoring('is not allowed with DELETECOLLECTION, try again after removing the option'));
    const others = {
      dryRun: parameters.dryRun,
      propagationPolicy: policy !== undefined,
      orphanDependents: orphanDependents !== undefined,
      gracePeriodSeconds: parameters.gracePeriodSeconds !== undefined,
      preconditions: parameters.uid !== undefined || parameters.resourceVersion !== undefined,
    };
    for (const [name, set] of Object.entries(others))
      if (set) problems.push(ignoring(`cannot be set together with .${name}`));
  }
  if (problems.length > 0) throw statusErrors.invalid(deleteOptions, '', problems);
}

/**
 * The effect of a DELETE on an object: `remove` it, `mark` it as being deleted (or change the mark), or `keep` it
 * unchanged.
 */
export type DeletionPlan = 'remove' | 'mark' | 'keep';

/** The last second of the year 9999: the latest time that RFC 3339 can represent. */
const lastTimeMs = 253_402_300_799_000;

/** Marks the object as being deleted and increases its generation, as every change of the desired state does. */
function begin(meta: ObjectMeta, at: Date, graceSeconds: number): void {
  meta.deletionTimestamp = formatTime(at);
  meta.deletionGracePeriodSeconds = graceSeconds;
  if ((meta.generation ?? 0) > 0) meta.generation = (meta.generation ?? 0) + 1;
}

/** Shortens a running grace period, which can never become longer. Returns whether it changed. */
function shorten(meta: ObjectMeta, current: number, requested: number | undefined, now: Date): boolean {
  if (requested === undefined || requested >= current) return false;
  const before = Date.parse(meta.deletionTimestamp ?? '');
  meta.deletionTimestamp = formatTime(new Date(Math.max(before - (current - requested) * 1000, now.getTime())));
  meta.deletionGracePeriodSeconds = requested;
  return true;
}

/**
 * Decides what a DELETE does, and marks `object`, a private copy of the stored object, when it remains: see
 * docs/reference/api-rules.md#order-of-a-delete.
 */
export function planDeletion(
  object: AnyObject,
  parameters: DeleteParameters,
  strategy: Strategy,
  context: StrategyContext,
): DeletionPlan {
  const meta = object.metadata ?? {};
  object.metadata = meta;
  const requested =
    parameters.gracePeriodSeconds === undefined ? undefined : wholeSeconds(Number(parameters.gracePeriodSeconds));
  const wasDeleting = meta.deletionTimestamp !== undefined;
  let changed = false;
  if (strategy.gracePeriod) {
    if (!wasDeleting) {
      const wanted = Number(strategy.gracePeriod(object, requested) ?? 0);
      const grace = Math.min(wanted, Math.floor((lastTimeMs - context.now.getTime()) / 1000));
      if (grace > 0) {
        begin(meta, new Date(context.now.getTime() + grace * 1000), grace);
        strategy.beginDeletion?.(object, context);
        changed = true;
      }
    } else if (meta.deletionGracePeriodSeconds !== undefined && meta.deletionGracePeriodSeconds > 0) {
      changed = shorten(meta, Number(meta.deletionGracePeriodSeconds), requested, context.now);
      if (!changed) return 'keep';
    }
  }

  const before = meta.finalizers ?? [];
  const finalizers = deletionFinalizers(before, parameters, strategy.defaultPropagation);
  if (finalizers !== before) {
    if (finalizers.length === 0) delete meta.finalizers;
    else meta.finalizers = [...finalizers];
    changed = true;
  }

  const waiting = meta.deletionTimestamp !== undefined && (meta.deletionGracePeriodSeconds ?? 0) > 0;
  const held = finalizers.length > 0 || (strategy.heldBack?.(object) ?? false);
  if (!waiting && !held) return 'remove';
  if (meta.deletionTimestamp === undefined) {
    begin(meta, context.now, 0);
    strategy.beginDeletion?.(object, context);
    changed = true;
  }
  return changed ? 'mark' : 'keep';
}

/** A negative period counts as one second. */
function wholeSeconds(seconds: number): number {
  return seconds < 0 ? 1 : seconds;
}

function requestedPolicy(
  parameters: Pick<DeleteParameters, 'orphanDependents' | 'propagationPolicy'>,
): PropagationPolicy | undefined {
  if (parameters.propagationPolicy !== undefined) return parameters.propagationPolicy;
  if (parameters.orphanDependents === undefined) return undefined;
  return parameters.orphanDependents ? 'Orphan' : 'Background';
}

/**
 * The finalizers that an object has after a DELETE: see docs/reference/api-rules.md#propagation. Returns `existing`
 * itself when nothing changes.
 */
export function deletionFinalizers(
  existing: readonly string[],
  parameters: Pick<DeleteParameters, 'orphanDependents' | 'propagationPolicy'>,
  kindDefault: PropagationPolicy | 'none' = 'Background',
): readonly string[] {
  const collected = existing.includes(orphanFinalizer) || existing.includes(foregroundFinalizer);
  let policy: PropagationPolicy | 'none';
  if (kindDefault === 'none') policy = 'none';
  else {
    const requested = requestedPolicy(parameters);
    if (requested === undefined && collected) return existing;
    policy = requested ?? kindDefault;
  }
  const wanted = policy === 'Orphan' ? orphanFinalizer : policy === 'Foreground' ? foregroundFinalizer : undefined;
  if (wanted === undefined && !collected) return existing;
  const kept = existing.filter((finalizer) => finalizer !== orphanFinalizer && finalizer !== foregroundFinalizer);
  return wanted === undefined ? kept : [...kept, wanted];
}
