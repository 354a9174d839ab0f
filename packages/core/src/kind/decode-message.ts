import type { DecodeContext, NodeDecoder, Slot } from './decode-context.ts';

/** Sorts the slots from `base` to `top` into canonical order. There are never more than the message has fields. */
function sortFrom(slots: Slot[], base: number, top: number): void {
  for (let end = base + 1; end < top; end += 1) {
    const slot = slots[end];
    if (!slot) return;
    let at = end - 1;
    for (let other = slots[at]; at >= base && other && other.index > slot.index; other = slots[at]) {
      slots[at + 1] = other;
      at -= 1;
    }
    slots[at + 1] = slot;
  }
}

/** Puts the fields that are present on the scratch stack, in canonical order; notes the unknown ones. */
function collect(
  source: Readonly<Record<string, unknown>>,
  byName: ReadonlyMap<string, Slot>,
  context: DecodeContext,
  base: number,
): void {
  const { slots } = context;
  let last = -1;
  let sorted = true;
  for (const name of Object.keys(source)) {
    const value = source[name];
    const slot = byName.get(name);
    if (slot === undefined) {
      if (value !== undefined) context.unknown(name);
      continue;
    }
    if (value === null || value === undefined || (value === '' && slot.emptyIsAbsent)) continue;
    if (slot.index < last) sorted = false;
    last = slot.index;
    slots[context.top] = slot;
    context.top += 1;
  }
  if (!sorted) sortFrom(slots, base, context.top);
}

function fill(out: Record<string, unknown>, slot: Slot, context: DecodeContext): void {
  const value = slot.whenAbsent?.(context);
  if (value !== undefined) out[slot.name] = value;
}

/**
 * Decoder of messages. The cost follows the fields that are present, not those that could be: wide messages with
 * few fields set are the rule.
 */
export function messageDecoder(fields: readonly Slot[]): NodeDecoder {
  const byName: ReadonlyMap<string, Slot> = new Map(fields.map((slot) => [slot.name, slot]));
  const filled = fields.filter((slot) => slot.whenAbsent !== undefined);
  return (input, context, key) => {
    if (typeof input !== 'object' || input === null || Array.isArray(input))
      throw context.typeError(key, 'object', input);
    const source = input as Readonly<Record<string, unknown>>;
    const { slots } = context;
    const base = context.top;
    context.enter(key, false);
    collect(source, byName, context, base);
    const end = context.top;
    const out: Record<string, unknown> = {};
    let next = 0;
    for (let at = base; at < end; at += 1) {
      const slot = slots[at] as Slot;
      for (let absent = filled[next]; absent && absent.index <= slot.index; absent = filled[next]) {
        if (absent.index < slot.index) fill(out, absent, context);
        next += 1;
      }
      const value = slot.decode(source[slot.name], context, slot.name);
      if (value !== null) out[slot.name] = value;
      else fill(out, slot, context);
    }
    for (let absent = filled[next]; absent; absent = filled[next]) {
      fill(out, absent, context);
      next += 1;
    }
    context.top = base;
    context.leave();
    return out;
  };
}
