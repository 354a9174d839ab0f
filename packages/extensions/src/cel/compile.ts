import { CelBudgetError, CelCompileError, CelEvaluationError, CelResultTypeError, Fault } from './base/errors.ts';
import { Functions, hasType } from './base/functions.ts';
import { type CelType, sameType, typeText } from './base/types.ts';
import type { CelValue } from './base/values.ts';
import { type Checked, checkExpression } from './checker.ts';
import { estimateCost } from './estimate-cost.ts';
import { Frame, planExpression, type Run } from './interpreter.ts';
import { type JsonValue, toCelValue } from './json-values.ts';
import { addAuthorizer, PendingDecision } from './library/authorizer.ts';
import { addConversions } from './library/conversions.ts';
import { addKubernetes } from './library/kubernetes.ts';
import { addLists } from './library/lists.ts';
import { addNetwork, addUrls } from './library/network.ts';
import { addOperators } from './library/operators.ts';
import { addRegex } from './library/regex.ts';
import { addStrings } from './library/strings.ts';
import { addTime } from './library/time.ts';
import { literalIssues } from './literals.ts';
import { parseExpression } from './parser.ts';

/** The cost limit of one evaluation, as in Kubernetes. */
export const perCallCostLimit = 1_000_000;
/** The cost limit of all expressions of one object or one policy together, as in Kubernetes. */
export const perRequestCostLimit = 10_000_000;

export interface CompileOptions {
  /** The variables of the expression and their types. */
  readonly variables: Readonly<Record<string, CelType>>;
  /** The permitted types of the result. Absent: any type. */
  readonly resultTypes?: readonly CelType[];
  /**
   * The schema type that contains the values of the variables. It is required for estimating
   * {@link CompiledExpression.maxCost}.
   */
  readonly costRoot?: CelType;
}

/** The remaining cost for several evaluations. */
export class CostBudget {
  remaining: number;
  constructor(limit = perRequestCostLimit) {
    this.remaining = limit;
  }
}

let known: Functions | undefined;

/** The functions of Kubernetes 1.34, made when the first expression is compiled. */
function allFunctions(): Functions {
  if (known === undefined) {
    const functions = new Functions();
    addOperators(functions);
    addConversions(functions);
    addStrings(functions);
    addTime(functions);
    addRegex(functions);
    addUrls(functions);
    addNetwork(functions);
    addKubernetes(functions);
    addAuthorizer(functions);
    const add = functions.find('_+_') ?? [];
    addLists(functions, (x, y) => {
      const overload = add.find(({ args }) => args.every((type, i) => hasType(i === 0 ? x : y, type)));
      return overload ? overload.call(x, y) : new Fault('no such overload');
    });
    known = functions;
  }
  return known;
}

/** A compiled expression. */
export class CompiledExpression {
  readonly source: string;
  readonly type: CelType;
  /** The estimated maximum cost of an evaluation; undefined without an estimate. */
  readonly maxCost: bigint | undefined;
  readonly #run: Run;
  readonly #slots: number;
  readonly #names: readonly string[];
  readonly #types: readonly CelType[];

  constructor(source: string, checked: Checked, variables: ReadonlyMap<string, CelType>, costRoot?: CelType) {
    this.source = source;
    this.type = checked.type;
    this.maxCost = costRoot && estimateCost(checked, costRoot);
    this.#names = [...variables.keys()];
    this.#types = [...variables.values()];
    const { run, slots } = planExpression(checked, this.#names);
    this.#run = run;
    this.#slots = slots;
  }

  /**
   * Evaluates the expression. `bindings` contain JSON values or CEL values; a variable without a binding is null.
   * Throws a {@link CelEvaluationError} when the evaluation fails, and a {@link CelBudgetError} when it exceeds the
   * cost limit of one evaluation or the budget.
   */
  evaluate(bindings: Readonly<Record<string, JsonValue>>, budget: CostBudget = new CostBudget()): CelValue {
    const slots = new Array(this.#slots + 3).fill(null);
    for (const [i, name] of this.#names.entries()) slots[i] = toCelValue(bindings[name] ?? null, this.#types[i]);
    const frame = new Frame(slots, Math.min(perCallCostLimit, budget.remaining));
    try {
      const value = this.#run(frame);
      if (value instanceof Fault) throw new CelEvaluationError(value.message);
      return value;
    } catch (error) {
      // A string or list exceeds the maximum size of the JavaScript engine.
      if (error instanceof RangeError) throw new CelBudgetError();
      throw error;
    } finally {
      budget.remaining -= frame.cost;
    }
  }

  /** Like {@link evaluate}, for expressions with an asynchronous authorizer. */
  async evaluateAsync(
    bindings: Readonly<Record<string, JsonValue>>,
    budget: CostBudget = new CostBudget(),
  ): Promise<CelValue> {
    for (;;) {
      const before = budget.remaining;
      try {
        return this.evaluate(bindings, budget);
      } catch (error) {
        if (!(error instanceof PendingDecision)) throw error;
        budget.remaining = before;
        await error.decided;
      }
    }
  }
}

/** Throws a {@link CelCompileError} for an expression with errors, or with a result of another type. */
export function compileExpression(source: string, options: CompileOptions): CompiledExpression {
  const variables = new Map(Object.entries(options.variables));
  const root = parseExpression(source);
  const checked = checkExpression(source, root, variables, allFunctions());
  const issues = literalIssues(checked);
  if (issues.length > 0) throw new CelCompileError(source, issues);
  const { resultTypes } = options;
  const fits = resultTypes?.some((type) => type.kind === 'dyn' || sameType(type, checked.type)) ?? true;
  if (!fits) throw new CelResultTypeError(resultTypes?.map(typeText) ?? [], typeText(checked.type));
  return new CompiledExpression(source, checked, variables, options.costRoot);
}
