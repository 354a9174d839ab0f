import type { CelValue } from './base/values.ts';

/** A node of a parsed expression. `position` is the offset in the source text that error messages refer to. */
export type Expression = { readonly position: number; readonly depth: number } & (
  | { readonly kind: 'literal'; readonly value: CelValue }
  | { readonly kind: 'ident'; readonly name: string }
  | {
      readonly kind: 'select';
      readonly operand: Expression;
      readonly field: string;
      readonly test: boolean;
    }
  | {
      readonly kind: 'call';
      readonly name: string;
      readonly target: Expression | undefined;
      readonly args: readonly Expression[];
    }
  | { readonly kind: 'list'; readonly elements: readonly Element[] }
  | { readonly kind: 'map'; readonly entries: readonly Entry[] }
  | Comprehension
);

export interface Element {
  readonly value: Expression;
  readonly optional: boolean;
}

export interface Entry {
  readonly key: Expression;
  readonly value: Expression;
  readonly optional: boolean;
}

/** The expansion of a macro: a fold over the elements of a list or the keys of a map. */
export interface Comprehension {
  readonly kind: 'comprehension';
  readonly range: Expression;
  readonly variable: string;
  /**
   * The second variable of a two-variable comprehension, which contains the value; `variable` contains the index or
   * key.
   */
  readonly valueVariable: string | undefined;
  readonly accumulator: string;
  readonly initial: Expression;
  readonly condition: Expression;
  readonly step: Expression;
  readonly result: Expression;
}

type WithoutDepth<T> = T extends { readonly depth: number } ? Omit<T, 'depth'> : never;

/** The child nodes of a node. */
export function childrenOf(node: WithoutDepth<Expression>): readonly Expression[] {
  switch (node.kind) {
    case 'literal':
    case 'ident':
      return [];
    case 'select':
      return [node.operand];
    case 'call':
      return node.target ? [node.target, ...node.args] : node.args;
    case 'list':
      return node.elements.map(({ value }) => value);
    case 'map':
      return node.entries.flatMap(({ key, value }) => [key, value]);
    default:
      return [node.range, node.initial, node.condition, node.step, node.result];
  }
}

/** Adds the depth of the tree to a node. */
export function expression(node: WithoutDepth<Expression>): Expression {
  let depth = 0;
  for (const child of childrenOf(node)) depth = Math.max(depth, child.depth);
  return { ...node, depth: depth + 1 } as Expression;
}

/** `a.b.c` when the expression is a chain of names. */
export function qualifiedName(node: Expression): string | undefined {
  if (node.kind === 'ident') return node.name;
  if (node.kind !== 'select' || node.test) return undefined;
  const prefix = qualifiedName(node.operand);
  return prefix === undefined ? undefined : `${prefix}.${node.field}`;
}
