import type { Comprehension, Expression } from './ast.ts';
import { CelBudgetError, CelEvaluationError, Fault, noSuchOverload } from './base/errors.ts';
import { hasType, noOverload, type Overload } from './base/functions.ts';
import {
  type CelValue,
  ListValue,
  MapValue,
  Optional,
  type Result,
  TypeValue,
  ValueList,
  ValueMap,
} from './base/values.ts';
import { type Checked, namedTypes } from './checker.ts';
import { unsupportedKey } from './library/operators.ts';
import { notIterable, notOptional, optionallySelected, present, selectedByKey, through } from './selection.ts';

/** Maximum duration of one evaluation, because costs approximate the duration only. */
const maxMs = 5000;
/** Number of macro steps between two checks of the clock. */
const clockInterval = 256;
/** The clock is also checked for a call with a higher cost, because the call may take milliseconds. */
const longCost = 10_000;

/** The state of one evaluation: the values of variables, and the cost so far. */
export class Frame {
  readonly slots: Result[];
  readonly #limit: number;
  cost = 0;
  #steps = 0;
  // Not injected: an injected clock would not advance during the synchronous evaluation.
  readonly #start = performance.now();

  constructor(slots: Result[], limit: number) {
    this.slots = slots;
    this.#limit = limit;
  }

  charge(cost: number): void {
    this.cost += cost;
    if (this.cost > this.#limit) throw new CelBudgetError();
    if (cost > longCost) this.#checkTime();
  }

  step(): void {
    if (++this.#steps % clockInterval === 0) this.#checkTime();
  }

  #checkTime(): void {
    if (performance.now() - this.#start > maxMs) throw new CelEvaluationError('operation interrupted');
  }
}

export type Run = (frame: Frame) => Result;

/** A node of the expression that is prepared for evaluation. */
interface Plan {
  readonly run: Run;
  /** The value of a constant node, which needs no evaluation and costs nothing. */
  readonly constant?: Result;
  /** `own` for a variable or a selection, `branch` for a conditional choice between such nodes. */
  readonly attribute?: 'own' | 'branch';
}

interface Slots {
  readonly names: ReadonlyMap<string, number>;
  readonly next: number;
}

/** The largest string or list that one call may make, in code units or elements. */
const maxResultSize = 10_000_000;

class Planner {
  readonly #checked: Checked;
  readonly #plans = new Map<Expression, Plan>();
  slots = 0;

  constructor(checked: Checked) {
    this.#checked = checked;
  }

  plan(node: Expression, slots: Slots): Plan {
    let plan = this.#plans.get(node);
    if (plan === undefined) {
      plan = this.#plan(node, slots);
      this.#plans.set(node, plan);
    }
    this.slots = Math.max(this.slots, slots.next);
    return plan;
  }

  #plan(node: Expression, slots: Slots): Plan {
    const variable = this.#checked.variableOf(node);
    if (variable !== undefined) return variablePlan(variable, slots);
    switch (node.kind) {
      case 'literal':
        return constantPlan(node.value);
      case 'select':
        return this.#select(node, slots);
      case 'call':
        return this.#call(node, slots);
      case 'list':
        return this.#list(node, slots);
      case 'map':
        return this.#map(node, slots);
      case 'comprehension':
        return this.#fold(node, slots);
      default:
        return constantPlan(noSuchOverload);
    }
  }

  #select({ operand, field, test }: Extract<Expression, { kind: 'select' }>, slots: Slots): Plan {
    const { run, attribute } = this.plan(operand, slots);
    if (test) {
      const own = attribute ? 0 : 1;
      return {
        run: (frame) => {
          const value = run(frame);
          frame.charge(own);
          return through(value, (known) => present(known, field));
        },
      };
    }
    const cost = attribute ? 1 : 2;
    return {
      attribute: 'own',
      run: (frame) => {
        const value = run(frame);
        if (value instanceof Fault) return value;
        frame.charge(cost);
        return selectedByKey(value, field);
      },
    };
  }

  #call(node: Extract<Expression, { kind: 'call' }>, slots: Slots): Plan {
    const whole = this.#checked.functionOf(node);
    const args = node.target && whole === undefined ? [node.target, ...node.args] : node.args;
    const plans = args.map((arg) => this.plan(arg, slots));
    const [first, second, third] = plans;
    switch (whole ?? node.name) {
      case '_&&_':
        return { run: logical(plans, false) };
      case '_||_':
        return { run: logical(plans, true) };
      case '@not_strictly_false':
        return {
          run: (frame) => {
            const value = first?.run(frame);
            frame.charge(1);
            return value !== false;
          },
        };
      case '_?_:_':
        if (first && second && third) return conditional(first, second, third);
        break;
      case '_[_]':
        if (first && second) return indexPlan(first, second, selectedByKey, false);
        break;
      case '_?._':
      case '_[?_]':
        if (first && second) return indexPlan(first, second, optionallySelected, true);
        break;
      case 'or':
      case 'orValue':
        if (first && second) return { run: alternative(first.run, second.run, node.name === 'or') };
        break;
      case '@in':
        // The operator `in` on a list of constants has no cost, because Kubernetes evaluates it with a set.
        if (second?.constant instanceof ListValue) {
          return { run: callRun(node.name, this.#checked.overloadsOf(node), plans, true) };
        }
        break;
      default:
    }
    const run = callRun(whole ?? node.name, this.#checked.overloadsOf(node), plans, false);
    return conversions.has(node.name) && !node.target ? foldConstant(run, plans) : { run };
  }

  #list({ elements }: Extract<Expression, { kind: 'list' }>, slots: Slots): Plan {
    const plans = elements.map(({ value, optional }) => ({ ...this.plan(value, slots), optional }));
    const run: Run = (frame) => {
      const items: CelValue[] = [];
      for (const plan of plans) {
        const value = plan.run(frame);
        if (value instanceof Fault) return value;
        if (!plan.optional) items.push(value);
        else if (!(value instanceof Optional)) return notOptional('list element', value);
        else if (value.value !== undefined) items.push(value.value);
      }
      frame.charge(10);
      return new ValueList(items);
    };
    return foldConstant(run, plans);
  }

  #map({ entries }: Extract<Expression, { kind: 'map' }>, slots: Slots): Plan {
    const plans = entries.map(({ key, value, optional }) => ({
      ...{ key: this.plan(key, slots), value: this.plan(value, slots), optional },
    }));
    const run: Run = (frame) => {
      const map = new ValueMap();
      for (const { key, value, optional } of plans) {
        const k = key.run(frame);
        if (k instanceof Fault) return k;
        const v = value.run(frame);
        if (v instanceof Fault) return v;
        const entry = optional ? (v instanceof Optional ? v.value : notOptional('entry', v)) : v;
        if (entry instanceof Fault) return entry;
        if (entry !== undefined && !map.set(k, entry)) return unsupportedKey;
      }
      frame.charge(30);
      return map;
    };
    return foldConstant(
      run,
      plans.flatMap(({ key, value, optional }) => [key, value, { optional }]),
    );
  }

  #fold(node: Comprehension, slots: Slots): Plan {
    const range = this.plan(node.range, slots).run;
    const initial = this.plan(node.initial, slots).run;
    const accu = slots.next;
    const withAccu: Slots = { names: new Map(slots.names).set(node.accumulator, accu), next: accu + 1 };
    const names = new Map(withAccu.names).set(node.variable, accu + 1);
    if (node.valueVariable !== undefined) names.set(node.valueVariable, accu + 2);
    const inner: Slots = { names, next: accu + 3 };
    const condition = this.plan(node.condition, inner).run;
    const step = this.plan(node.step, inner).run;
    const result = this.plan(node.result, withAccu).run;
    const two = node.valueVariable !== undefined;
    return {
      run: (frame) => {
        const source = range(frame);
        if (source instanceof Fault) return source;
        const { slots: values } = frame;
        values[accu] = initial(frame);
        const items = source instanceof MapValue ? source.keys() : source;
        if (!(items instanceof ListValue || source instanceof MapValue)) return notIterable(source);
        let position = 0n;
        for (const item of items as Iterable<Result>) {
          values[accu + 1] = two && source instanceof ListValue ? position++ : item;
          if (two) values[accu + 2] = source instanceof MapValue ? (source.get(item as CelValue) ?? null) : item;
          frame.step();
          if (condition(frame) !== true) break;
          values[accu] = step(frame);
        }
        return result(frame);
      },
    };
  }
}

function constantPlan(constant: Result): Plan {
  return { constant, run: () => constant };
}

function variablePlan(name: string, { names }: Slots): Plan {
  const slot = names.get(name);
  if (slot === undefined) return constantPlan(new TypeValue(namedTypes.get(name)?.name ?? name));
  return {
    attribute: 'own',
    run: (frame) => {
      frame.charge(1);
      return frame.slots[slot] ?? null;
    },
  };
}

/** Evaluates a literal once in advance if all its parts are constants. */
function foldConstant(run: Run, parts: readonly { constant?: Result; optional?: boolean }[]): Plan {
  const constant = parts.every((part) => part.optional === false || (part.constant !== undefined && !part.optional));
  const constants = parts.every((part) => !('run' in part) || part.constant !== undefined);
  if (!constant || !constants || parts.some(({ optional }) => optional)) return { run };
  const value = run(new Frame([], Number.POSITIVE_INFINITY));
  return value instanceof Fault ? { run } : constantPlan(value);
}

function indexPlan(
  { run, attribute }: Plan,
  key: Plan,
  select: (value: CelValue, key: CelValue) => Result,
  optional: boolean,
): Plan {
  const own = attribute ? 0 : 1;
  const keyCost = key.attribute ? 0 : 1;
  return {
    attribute: 'own',
    run: (frame) => {
      const value = run(frame);
      const at = key.run(frame);
      if (value instanceof Fault) return value;
      if (at instanceof Fault) return at;
      const found = select(value, at);
      frame.charge(own + (optional && found === Optional.none ? 0 : keyCost));
      return found;
    },
  };
}

/** Branches that are variables or selections cost one unit less, as in cel-go. */
function conditional(condition: Plan, yes: Plan, no: Plan): Plan {
  const refund = (plan: Plan, frame: Frame): Result => {
    const value = plan.run(frame);
    if (plan.attribute === 'own') frame.charge(-1);
    return value;
  };
  return {
    attribute: 'branch',
    run: (frame) => {
      const value = condition.run(frame);
      if (typeof value === 'boolean') return refund(value ? yes : no, frame);
      return value instanceof Fault ? value : noSuchOverload;
    },
  };
}

/**
 * Evaluates `&&` and `||`. The first operand with the deciding value determines the result, even after a failed
 * operand.
 */
function logical(plans: readonly Plan[], deciding: boolean): Run {
  return (frame) => {
    let fault: Fault | undefined;
    for (const { run } of plans) {
      const value = run(frame);
      if (value === deciding) return deciding;
      if (typeof value !== 'boolean') fault ??= value instanceof Fault ? value : noSuchOverload;
    }
    return fault ?? !deciding;
  };
}

function alternative(run: Run, other: Run, wrapped: boolean): Run {
  return (frame) =>
    through(run(frame), (value) => {
      if (!(value instanceof Optional)) return noSuchOverload;
      if (value.value === undefined) return other(frame);
      return wrapped ? value : value.value;
    });
}

/** Functions whose calls are evaluated in advance if all their arguments are constants. */
const conversions = new Set('bool bytes double duration dyn int string timestamp type uint'.split(' '));

function callRun(name: string, overloads: readonly Overload[], plans: readonly Plan[], free: boolean): Run {
  const runs = plans.map(({ run }) => run);
  return (frame) => {
    const args: CelValue[] = [];
    let fault: Fault | undefined;
    for (const run of runs) {
      const value = run(frame);
      if (value instanceof Fault) fault ??= value;
      else args.push(value);
      if (fault && runs.length > 2) return fault;
    }
    if (fault) {
      frame.charge(1);
      return fault;
    }
    for (const overload of overloads) {
      if (!overload.args.every((type, i) => hasType(args[i] ?? null, type))) continue;
      if (overload.resultSize && overload.resultSize(...args) > maxResultSize) throw new CelBudgetError();
      if (overload.resultCost) {
        const result = overload.call(...args);
        frame.charge(overload.resultCost(result));
        return result;
      }
      // The cost is charged before the call, so that a call beyond the budget is not started.
      frame.charge(free ? 0 : (overload.cost?.(args) ?? 1));
      return overload.call(...args);
    }
    frame.charge(1);
    return noOverload(name, args);
  };
}

/** Prepares a checked expression for evaluation. The slots of the variables are in the order of `variables`. */
export function planExpression(checked: Checked, variables: readonly string[]): { run: Run; slots: number } {
  const planner = new Planner(checked);
  const names = new Map(variables.map((name, slot) => [name, slot]));
  const { run } = planner.plan(checked.root, { names, next: variables.length });
  return { run, slots: planner.slots };
}
