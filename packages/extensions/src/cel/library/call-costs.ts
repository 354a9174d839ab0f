import type { Overload } from '../base/functions.ts';
import type { CelType } from '../base/types.ts';
import type { CelValue } from '../base/values.ts';

/** Minimum and maximum size of a string (in code points), of bytes, a list or a map. */
export interface Size {
  readonly min: bigint;
  readonly max: bigint;
}

/** Upper limit of costs and sizes. Greater results of calculations are replaced by it. */
export const unlimited = 2n ** 64n - 1n;
export const unknownSize: Size = { min: 0n, max: unlimited };

function bounded(amount: bigint): bigint {
  return lesser(amount, unlimited);
}

export function plus(...amounts: readonly bigint[]): bigint {
  return bounded(amounts.reduce((sum, amount) => sum + amount, 0n));
}

export function times(x: bigint, y: bigint): bigint {
  return bounded(x * y);
}

/** The product, rounded up. It is calculated in floating point, as in cel-go. */
function scaled(amount: bigint, factor: number): bigint {
  const product = Math.ceil(Number(amount) * factor);
  return product >= 2 ** 64 ? unlimited : BigInt(product);
}

export function fixedSize(size: bigint): Size {
  return { min: size, max: size };
}

export function addSizes(x: Size, y: Size): Size {
  return { min: plus(x.min, y.min), max: plus(x.max, y.max) };
}

function multiplySizes(x: Size, y: Size): Size {
  return { min: times(x.min, y.min), max: times(x.max, y.max) };
}

function lesser(x: bigint, y: bigint): bigint {
  if (x < y) return x;
  return y;
}

export function greater(x: bigint, y: bigint): bigint {
  return x === lesser(x, y) ? y : x;
}

export function unionOfSizes(x: Size, y: Size): Size {
  return { min: lesser(x.min, y.min), max: greater(x.max, y.max) };
}

/** The cost of reading text of this size once. */
export function traversalCost(size: bigint): bigint {
  return scaled(size, 0.1);
}

/** The cost of a regular expression of `pattern` code points, applied to `text` code points. */
function regexCost(text: bigint, pattern: bigint): bigint {
  return times(traversalCost(plus(text, 1n)), scaled(pattern, 0.25));
}

/** The properties of an operand from which the cost of a call is estimated. */
export interface Operand {
  readonly type: CelType;
  readonly size: Size;
  /** The value of a literal; undefined for all other expressions. */
  readonly literal: CelValue | undefined;
  /** The type and size of the elements of a list; undefined when their type is not known. */
  readonly element: { readonly type: CelType; readonly size: Size } | undefined;
}

/** The maximum cost of a call without the cost of its operands, and the size of its result if known. */
export interface CallCost {
  readonly cost: bigint;
  readonly size?: Size;
}

interface Call {
  readonly overload: Overload;
  readonly target: Operand | undefined;
  readonly args: readonly Operand[];
  /** The receiver, or the first argument of a call without one. */
  readonly first: Operand;
}

type Estimate = (call: Call) => CallCost | undefined;

const nominal: Estimate = () => ({ cost: 1n });
const readsArgument: Estimate = ({ args: [arg] }) => (arg ? { cost: traversalCost(arg.size.max) } : undefined);
const readsTarget: Estimate = ({ target }) => target && { cost: traversalCost(target.size.max), size: target.size };

/** Estimate for list functions that read each element, and for string functions with the same names. */
const readsElements: Estimate = ({ target }) => {
  if (target === undefined) return undefined;
  const { size, element } = target;
  if (element === undefined) return { cost: traversalCost(size.max) };
  const isText = element.type.kind === 'string' || element.type.kind === 'bytes';
  return { cost: times(size.max, plus(1n, isText ? traversalCost(element.size.max) : 0n)) };
};

function replacedSize(text: Size, old: Size, replacement: Size): Size {
  let count = 0n;
  let kept = 0n;
  if (old.min === 0n) {
    count = plus(text.max, 1n);
    kept = text.max;
  } else if (replacement.max <= old.min) kept = text.max;
  else count = BigInt(Math.ceil(Number(text.max) / Number(old.min)));
  let leastCount = 0n;
  let leastKept = 0n;
  if (old.max === 0n) {
    leastCount = plus(text.min, 1n);
    leastKept = text.min;
  } else if (old.max <= replacement.min) leastKept = text.min;
  else leastCount = BigInt(Math.ceil(Number(text.min) / Number(old.max)));
  return addSizes(multiplySizes({ min: leastCount, max: bounded(count) }, replacement), { min: leastKept, max: kept });
}

const joined: Estimate = ({ target, args: [separator] }) => {
  if (target === undefined) return undefined;
  let size = target.element ? multiplySizes(target.size, target.element.size) : fixedSize(0n);
  if (separator) {
    const less = (count: bigint) => (count > 0n ? count - 1n : 0n);
    const gaps = { min: less(target.size.min), max: less(target.size.max) };
    size = addSizes(size, multiplySizes(separator.size, gaps));
  }
  return { cost: traversalCost(size.max), size };
};

const split: Estimate = ({ target, args: [, limit] }) => {
  if (target === undefined) return undefined;
  const { max } = target.size;
  const most = typeof limit?.literal === 'bigint' ? BigInt.asUintN(64, limit.literal) : max;
  return { cost: scaled(max, 0.2), size: { min: 0n, max: most } };
};

const found: Estimate = ({ target, args: [pattern] }) =>
  target && pattern
    ? { cost: regexCost(target.size.max, pattern.size.max), size: { min: 0n, max: target.size.max } }
    : undefined;

/**
 * The cost for an argument that is an IP address is constant. A string argument is parsed at a cost in proportion to
 * its size.
 */
const containsAddress =
  (cost: bigint): Estimate =>
  ({ overload, args: [other] }) => {
    const isText = overload.args[1]?.kind === 'string';
    return { cost: plus(cost, isText ? traversalCost(other?.size.max ?? 0n) : 0n) };
  };

/** The estimate for a call that creates a list, with `factor` steps for each element. */
function listCall(factor: number, size: Size): CallCost {
  return { cost: plus(scaled(size.max, factor), 11n), size };
}

function naturalOf({ literal }: Operand | { readonly literal?: undefined } = {}, otherwise: bigint): bigint {
  if (typeof literal !== 'bigint') return otherwise;
  return literal < 0n ? 0n : literal;
}

const sets =
  (factor: number): Estimate =>
  ({ args: [x, y] }) =>
    x && y && { cost: plus(scaled(times(x.size.max, y.size.max), factor), 1n) };

/** Every element may be compared with every other. */
const sorted =
  (position: 0 | 1): Estimate =>
  ({ overload, target, args: [keys] }) => {
    const list = position === 0 ? target : keys;
    const kind = overload.args[position]?.params[0]?.kind;
    return list && listCall(kind === 'string' || kind === 'bytes' ? 2.1 : 2, multiplySizes(list.size, list.size));
  };

const constantTime = new Set(['kubernetes.Quantity', 'kubernetes.Semver', 'net.IP', 'net.CIDR']);
const maxFormatName = 64n;

const comparesText: Estimate = ({ args: [x, y] }) => {
  if (!(x && y)) return undefined;
  return { cost: traversalCost(lesser(x.size.max, y.size.max)) };
};

const equality: Estimate = (call) => {
  const [x, y] = call.args;
  if (!(x && y) || x.type.name !== y.type.name) return comparesText(call);
  if (constantTime.has(x.type.name)) return { cost: 1n };
  if (x.type.name === 'kubernetes.NamedFormat') return { cost: traversalCost(maxFormatName) };
  // The cost depends only on the size of the second URL, as in Kubernetes.
  return x.type.name === 'kubernetes.URL' ? { cost: traversalCost(y.size.max) } : comparesText(call);
};

const ofTexts =
  (estimate: Estimate): Estimate =>
  (call) =>
    ['string', 'bytes'].includes(call.overload.args[0]?.kind ?? '') ? estimate(call) : undefined;

const estimates = new Map<string, Estimate>();

function declare(names: string, estimate: Estimate): void {
  for (const name of names.split(' ')) estimates.set(name, estimate);
}

// Functions of Kubernetes. Source: `EstimateCallCost` in k8s.io/apiserver/pkg/cel/library/cost.go.
declare('check', () => ({ cost: 350_000n }));
declare('serviceAccount path group resource subresource namespace name allowed reason error errored', nominal);
declare('masked prefixLength family isUnspecified isLoopback isLinkLocalMulticast isLinkLocalUnicast', nominal);
declare('isGlobalUnicast format.named sign asInteger isInteger asApproximateFloat isGreaterThan isLessThan', nominal);
declare('compareTo add sub major minor patch', nominal);
declare('getScheme getHostname getHost getPort getEscapedPath getQuery', nominal);
declare('fieldSelector labelSelector', ({ args: [selector] }) => {
  const max = selector?.size.max ?? 0n;
  return { cost: plus(10n, traversalCost(max), scaled(scaled(max, 0.5), 50)) };
});
declare('isSorted sum max min indexOf lastIndexOf', readsElements);
declare(
  'url jsonpatch.escapeKey',
  ({ args: [text] }) => text && { cost: traversalCost(text.size.max), size: text.size },
);
declare('lowerAscii upperAscii substring trim', readsTarget);
declare('replace', ({ target, args: [old, replacement] }) =>
  target && old && replacement
    ? { cost: scaled(target.size.max, 0.2), size: replacedSize(target.size, old.size, replacement.size) }
    : undefined,
);
declare('split', split);
declare('join', joined);
declare('find findAll', found);
declare('cidr isIP isCIDR quantity isQuantity semver isSemver', readsArgument);
declare('ip', (call) => (call.target ? { cost: 1n } : readsArgument(call)));
declare('ip.isCanonical', ({ args: [text] }) => text && { cost: scaled(text.size.max, 0.2) });
declare('containsIP', containsAddress(4n));
declare('containsCIDR', containsAddress(7n));
declare('validate', ({ args: [text] }) => text && { cost: times(traversalCost(text.size.max), 32n) });
declare('_==_', equality);

// Extension libraries of cel-go: `ext/lists.go`, `ext/sets.go`.
declare('slice', ({ target, args: [start, end] }) => {
  const size = naturalOf(end, target?.size.max ?? unlimited) - naturalOf(start, 0n);
  return listCall(1, fixedSize(BigInt.asUintN(64, size)));
});
declare('flatten', ({ first, args: [depth] }) =>
  listCall(Number(depth ? naturalOf(depth, unlimited) : 1n), first.size),
);
declare('lists.range', ({ args: [count] }) => listCall(1, fixedSize(naturalOf(count, unlimited))));
declare('reverse', ({ first }) => listCall(1, first.size));
declare('distinct', ({ first }) => listCall(2, multiplySizes(first.size, first.size)));
declare('sort', sorted(0));
declare('@sortByAssociatedKeys', sorted(1));
declare('sets.contains sets.intersects', sets(1));
declare('sets.equivalent', sets(2));

// Standard functions of CEL. Source: `functionCost` in `checker/cost.go` of cel-go.
declare('format', ({ first }) => ({ cost: traversalCost(first.size.max) }));
declare('bytes', ({ overload, first: { size } }) =>
  overload.args[0]?.kind === 'string'
    ? { cost: traversalCost(size.max), size: { min: size.min, max: BigInt.asUintN(64, size.max * 4n) } }
    : undefined,
);
declare('string', ({ overload, first: { size } }) =>
  overload.args[0]?.kind === 'bytes'
    ? { cost: traversalCost(size.max), size: { min: size.min / 4n, max: size.max } }
    : undefined,
);
declare('strings.quote', ({ first: { size } }) => ({
  cost: traversalCost(size.max),
  size: { min: size.min + 2n, max: BigInt.asUintN(64, size.max * 2n + 2n) },
}));
declare('startsWith endsWith', readsArgument);
declare('@in', ({ overload, args: [, list] }) =>
  overload.args[1]?.kind === 'list' && list ? { cost: list.size.max } : undefined,
);
declare('matches', ({ target, args: [pattern] }) =>
  target && pattern ? { cost: regexCost(target.size.max, pattern.size.max) } : undefined,
);
declare('contains', ({ target, args: [part] }) =>
  target && part ? { cost: times(traversalCost(target.size.max), traversalCost(part.size.max)) } : undefined,
);
declare('_<_ _<=_ _>_ _>=_', ofTexts(comparesText));
declare('_!=_', comparesText);
declare('_+_', ({ overload, args: [x, y] }) => {
  const { kind } = overload.args[0] ?? {};
  if (!(x && y) || (kind !== 'string' && kind !== 'bytes' && kind !== 'list')) return undefined;
  const size = addSizes(x.size, y.size);
  return { cost: kind === 'list' ? 1n : traversalCost(size.max), size };
});

/** The maximum cost of a call of one overload of a function. */
export function callCost(
  name: string,
  overload: Overload,
  target: Operand | undefined,
  args: readonly Operand[],
): CallCost {
  const first = target ?? args[0];
  return (first && estimates.get(name)?.({ overload, target, args, first })) ?? { cost: 1n };
}
