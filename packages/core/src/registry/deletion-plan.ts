import type { Strategy, StrategyContext } from '../kind/strategy.ts';
import { formatTime } from '../meta/time.ts';
import type { ObjectMeta } from '../meta/types.ts';
import { deletionFinalizers } from './deletion-finalizers.ts';
import type { AnyObject } from './json-values.ts';
import type { DeleteParameters } from './resource-service.ts';

/** What a DELETE does to an object: `remove` it, `mark` it as deleting (or change the mark), or `keep` it as it is. */
export type DeletionPlan = 'remove' | 'mark' | 'keep';

/** The last second of the year 9999: the greatest time that RFC 3339 can write. */
const lastTimeMs = 253_402_300_799_000;

/** The object's deletion begins: bumps a kept generation, as every change of intent does. */
function begin(meta: ObjectMeta, at: Date, graceSeconds: number): void {
  meta.deletionTimestamp = formatTime(at);
  meta.deletionGracePeriodSeconds = graceSeconds;
  if ((meta.generation ?? 0) > 0) meta.generation = (meta.generation ?? 0) + 1;
}

/** A running grace period may only be shortened; returns whether it was. */
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

/**
 * True when nothing holds a deleting object, so that the write that produced this state removes it: see
 * docs/reference/api-rules.md#order-of-a-delete.
 */
export function isReleased(object: AnyObject, strategy: Strategy): boolean {
  const meta = object.metadata;
  return (
    meta?.deletionTimestamp !== undefined &&
    (meta.deletionGracePeriodSeconds ?? 0) === 0 &&
    (meta.finalizers?.length ?? 0) === 0 &&
    !(strategy.heldBack?.(object) ?? false)
  );
}
