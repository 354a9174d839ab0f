import { type Expression, expression } from './ast.ts';
import type { CelValue } from './base/values.ts';
import { SyntaxIssue } from './lexer.ts';

const accumulator = '@result';

/** Creates the nodes of one macro. Error messages about these nodes refer to the position of the macro call. */
class Builder {
  readonly position: number;

  constructor(position: number) {
    this.position = position;
  }

  literal(value: CelValue): Expression {
    return expression({ kind: 'literal', value, position: this.position });
  }

  ident(name: string): Expression {
    return expression({ kind: 'ident', name, position: this.position });
  }

  get accu(): Expression {
    return this.ident(accumulator);
  }

  call(name: string, ...args: Expression[]): Expression {
    return expression({ kind: 'call', name, target: undefined, args, position: this.position });
  }

  member(target: Expression, name: string, ...args: Expression[]): Expression {
    return expression({ kind: 'call', name, target, args, position: this.position });
  }

  list(...values: Expression[]): Expression {
    const elements = values.map((value) => ({ value, optional: false }));
    return expression({ kind: 'list', elements, position: this.position });
  }

  map(): Expression {
    return expression({ kind: 'map', entries: [], position: this.position });
  }

  fold(
    range: Expression,
    [variable, valueVariable]: readonly [string, string?],
    initial: Expression,
    condition: Expression,
    step: Expression,
    result = this.accu,
    name = accumulator,
  ): Expression {
    return expression({
      ...{ kind: 'comprehension', range, variable, valueVariable, accumulator: name },
      ...{ initial, condition, step, result, position: this.position },
    });
  }

  /** Evaluates `body` with a variable that has the value of `value`. */
  bind(name: string, value: Expression, body: Expression): Expression {
    return this.fold(this.list(), ['#unused'], value, this.literal(false), this.ident(name), body, name);
  }

  filtered(filter: Expression | undefined, step: Expression): Expression {
    return filter ? this.call('_?_:_', filter, step, this.accu) : step;
  }
}

type Vars = readonly [string, string?];
type Expand = (build: Builder, target: Expression, vars: Vars, args: readonly Expression[]) => Expression;

const all: Expand = (build, target, vars, [predicate = target]) =>
  build.fold(
    target,
    vars,
    build.literal(true),
    build.call('@not_strictly_false', build.accu),
    build.call('_&&_', build.accu, predicate),
  );

const exists: Expand = (build, target, vars, [predicate = target]) =>
  build.fold(
    target,
    vars,
    build.literal(false),
    build.call('@not_strictly_false', build.call('!_', build.accu)),
    build.call('_||_', build.accu, predicate),
  );

const existsOne: Expand = (build, target, vars, [predicate = target]) =>
  build.fold(
    target,
    vars,
    build.literal(0n),
    build.literal(true),
    build.filtered(predicate, build.call('_+_', build.accu, build.literal(1n))),
    build.call('_==_', build.accu, build.literal(1n)),
  );

/** Expands `map(x, transform)`, `map(x, predicate, transform)`, and `transformList` with two variables. */
const mapList: Expand = (build, target, vars, args) => {
  const [filter, transform = target] = args.length === 2 ? args : [undefined, args[0]];
  const step = build.call('_+_', build.accu, build.list(transform));
  return build.fold(target, vars, build.list(), build.literal(true), build.filtered(filter, step));
};

const filterList: Expand = (build, target, vars, [predicate = target]) => {
  const step = build.call('_+_', build.accu, build.list(build.ident(vars[0])));
  return build.fold(target, vars, build.list(), build.literal(true), build.filtered(predicate, step));
};

const transformMap: Expand = (build, target, vars, args) => {
  const [filter, transform = target] = args.length === 2 ? args : [undefined, args[0]];
  const step = build.call('cel.@mapInsert', build.accu, build.ident(vars[0]), transform);
  return build.fold(target, vars, build.map(), build.literal(true), build.filtered(filter, step));
};

const transformMapEntry: Expand = (build, target, vars, args) => {
  const [filter, transform = target] = args.length === 2 ? args : [undefined, args[0]];
  const step = build.call('cel.@mapInsert', build.accu, transform);
  return build.fold(target, vars, build.map(), build.literal(true), build.filtered(filter, step));
};

const sortInput = '@__sortBy_input__';
const sortBy: Expand = (build, target, vars, args) => {
  const keys = mapList(build, build.ident(sortInput), vars, args);
  const sorted = build.member(build.ident(sortInput), '@sortByAssociatedKeys', keys);
  return build.bind(sortInput, target, sorted);
};

const optMap: Expand = (build, target, [name], [transform = target]) =>
  build.call(
    '_?_:_',
    build.member(target, 'hasValue'),
    build.call('optional.of', build.bind(name, build.member(target, 'value'), transform)),
    build.call('optional.none'),
  );

const optFlatMap: Expand = (build, target, [name], [transform = target]) =>
  build.call(
    '_?_:_',
    build.member(target, 'hasValue'),
    build.bind(name, build.member(target, 'value'), transform),
    build.call('optional.none'),
  );

interface Macro {
  readonly variables: 1 | 2;
  /** The error message for an argument that is not a name. */
  readonly notAName: string;
  readonly expand: Expand;
}

const simpleName = 'argument must be a simple name';
const noIdentifier = 'argument is not an identifier';

/** Macros by name and number of arguments. */
const macros = new Map<string, Macro>();

function declare(names: readonly string[], variables: 1 | 2, notAName: string, expand: Expand): void {
  for (const name of names) macros.set(name, { variables, notAName, expand });
}

declare(['all/2'], 1, simpleName, all);
declare(['exists/2'], 1, simpleName, exists);
declare(['exists_one/2', 'existsOne/2'], 1, simpleName, existsOne);
declare(['map/2', 'map/3'], 1, noIdentifier, mapList);
declare(['filter/2'], 1, noIdentifier, filterList);
declare(['sortBy/2'], 1, noIdentifier, sortBy);
declare(['optMap/2'], 1, 'optMap() variable name must be a simple identifier', optMap);
declare(['optFlatMap/2'], 1, 'optFlatMap() variable name must be a simple identifier', optFlatMap);
declare(['all/3'], 2, simpleName, all);
declare(['exists/3'], 2, simpleName, exists);
declare(['exists_one/3', 'existsOne/3'], 2, simpleName, existsOne);
declare(['transformList/3', 'transformList/4'], 2, simpleName, mapList);
declare(['transformMap/3', 'transformMap/4'], 2, simpleName, transformMap);
declare(['transformMapEntry/3', 'transformMapEntry/4'], 2, simpleName, transformMapEntry);

function variableName(arg: Expression, notAName: string): string {
  if (arg.kind !== 'ident') throw new SyntaxIssue(arg.position, notAName);
  if (arg.name === '__result__') {
    throw new SyntaxIssue(arg.position, 'iteration variable overwrites accumulator variable');
  }
  return arg.name;
}

/** Expands a call of a macro; returns undefined for other calls. */
export function expandMacro(
  name: string,
  target: Expression | undefined,
  args: readonly Expression[],
  position: number,
): Expression | undefined {
  const [first, second] = args;
  if (target === undefined) {
    if (name !== 'has' || args.length !== 1 || first === undefined) return undefined;
    if (first.kind !== 'select') throw new SyntaxIssue(first.position, 'invalid argument to has() macro');
    return expression({ kind: 'select', operand: first.operand, field: first.field, test: true, position });
  }
  const macro = macros.get(`${name}/${args.length}`);
  if (macro === undefined || first === undefined) return undefined;
  const build = new Builder(position);
  const variable = variableName(first, macro.notAName);
  if (macro.variables === 1) return macro.expand(build, target, [variable], args.slice(1));
  if (second === undefined) return undefined;
  const value = variableName(second, macro.notAName);
  if (variable === value) throw new SyntaxIssue(second.position, `duplicate variable name: ${variable}`);
  return macro.expand(build, target, [variable, value], args.slice(2));
}
