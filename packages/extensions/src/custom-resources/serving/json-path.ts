import { isJsonObject, jsonText } from '@keelson/core/internal';

type Step =
  | { readonly type: 'names'; readonly names: readonly string[] }
  | { readonly type: 'all' }
  | { readonly type: 'below' }
  | { readonly type: 'slice'; readonly from?: number; readonly to?: number; readonly step: number }
  | { readonly type: 'index'; readonly index: number }
  | { readonly type: 'filter'; readonly path: JsonPath; readonly operator: string; readonly value: unknown };

/** A path of kubectl's JSONPath, such as `.status.conditions[?(@.type=="Ready")].status`. */
export type JsonPath = readonly Step[];

/** Maximum number of values that one path visits. Otherwise each `..` would visit a large object once per level. */
const maxVisited = 10_000;

const tokenPattern =
  /\.\.|\.\*|\.((?:[^.[\]\\]|\\.)+)|\[\*\]|\[(-?\d+)\]|\[(-?\d*):(-?\d*)(?::(-?\d+))?\]|\[((?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(?:\s*,\s*(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"))*)\]|\[\?\(\s*@((?:\.[^\s=<>!)]+|\[[^\]]+\])+)\s*(?:(==|!=|<=|>=|<|>)\s*(.+?)\s*)?\)\]/sy;

const unescaped = (text: string) => text.replace(/\\(.)/gs, '$1');

/** @returns undefined for a path that cannot be read. */
export function parseJsonPath(path: string): JsonPath | undefined {
  const steps: Step[] = [];
  if (path === '.') return steps;
  // Each call needs its own regular expression with its own `lastIndex`, because a filter contains a nested path.
  const token = new RegExp(tokenPattern);
  while (token.lastIndex < path.length) {
    const found = token.exec(path);
    if (found === null) return undefined;
    const step = stepOf(found);
    if (step === undefined) return undefined;
    steps.push(step);
    if (step.type === 'below' && !'.['.includes(path[token.lastIndex] ?? '')) {
      // A name directly after `..` has no further dot.
      const name = /(?:[^.[\]\\]|\\.)+/sy;
      name.lastIndex = token.lastIndex;
      const [word] = name.exec(path) ?? [];
      if (word === undefined) return undefined;
      steps.push(word === '*' ? { type: 'all' } : { type: 'names', names: [unescaped(word)] });
      token.lastIndex = name.lastIndex;
    }
  }
  return steps;
}

function stepOf([text, name, index, from, to, step, names, filter, operator, value]: RegExpExecArray):
  | Step
  | undefined {
  if (text === '..') return { type: 'below' };
  if (name !== undefined) return { type: 'names', names: [unescaped(name)] };
  if (index !== undefined) return { type: 'index', index: Number(index) };
  if (from !== undefined) {
    const bounds = { ...(from === '' ? {} : { from: Number(from) }), ...(to ? { to: Number(to) } : {}) };
    const width = step === undefined ? 1 : Number(step);
    return width > 0 ? { type: 'slice', ...bounds, step: width } : undefined;
  }
  if (names !== undefined) {
    const words = [...names.matchAll(/'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"/gs)];
    return { type: 'names', names: words.map(([, single, double]) => unescaped(single ?? double ?? '')) };
  }
  if (filter !== undefined) {
    const path = parseJsonPath(filter);
    return path && { type: 'filter', path, operator: operator ?? '', value: literal(value) };
  }
  return { type: 'all' };
}

function literal(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  const quoted = /^(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")$/s.exec(text);
  if (quoted) return unescaped(quoted[1] ?? quoted[2] ?? '');
  if (text === 'true' || text === 'false') return text === 'true';
  return Number.isNaN(Number(text)) ? text : Number(text);
}

/** All values at the path. Missing fields yield no value. */
export function readJsonPath(path: JsonPath, value: unknown): readonly unknown[] {
  let values: readonly unknown[] = [value];
  let visited = 0;
  for (const step of path) {
    const next: unknown[] = [];
    for (const one of values) {
      for (const result of applied(step, one)) {
        if (visited++ > maxVisited) return next;
        next.push(result);
      }
    }
    values = next;
  }
  return values;
}

function* applied(step: Step, value: unknown): Generator<unknown> {
  switch (step.type) {
    case 'names':
      if (isJsonObject(value)) for (const name of step.names) if (Object.hasOwn(value, name)) yield value[name];
      return;
    case 'all':
      if (typeof value === 'object' && value !== null) yield* Object.values(value);
      return;
    case 'below':
      yield* below(value);
      return;
    case 'index':
      if (Array.isArray(value)) {
        const item = value.at(step.index);
        if (item !== undefined) yield item;
      }
      return;
    case 'slice':
      if (Array.isArray(value)) {
        const items = value.slice(step.from, step.to);
        for (let i = 0; i < items.length; i += step.step) yield items[i];
      }
      return;
    case 'filter':
      if (Array.isArray(value)) for (const item of value) if (selected(step, item)) yield item;
  }
}

function* below(value: unknown): Generator<unknown> {
  if (typeof value !== 'object' || value === null) return;
  yield value;
  for (const item of Object.values(value)) yield* below(item);
}

function selected({ path, operator, value }: Extract<Step, { type: 'filter' }>, item: unknown): boolean {
  const [found] = readJsonPath(path, item);
  if (found === undefined) return false;
  if (operator === '') return true;
  if (operator === '==') return found === value;
  if (operator === '!=') return found !== value;
  if (typeof found !== typeof value || (typeof found !== 'number' && typeof found !== 'string')) return false;
  const other = value as typeof found;
  if (operator === '<') return found < other;
  if (operator === '>') return found > other;
  return operator === '<=' ? found <= other : found >= other;
}

/** A value as kubectl prints it. */
export function printedValue(value: unknown): string {
  return typeof value === 'string' ? value : typeof value === 'object' ? jsonText(value) : String(value);
}
