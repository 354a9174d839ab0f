import { childrenOf, type Expression } from './ast.ts';
import { type CelIssue, Fault } from './base/errors.ts';
import { type CelType, formatType, sameType, unwrapOptional } from './base/types.ts';
import type { Checked } from './checker.ts';
import { compilePattern } from './library/regex.ts';
import { parseDuration, parseTimestamp } from './library/time.ts';

const tests: Record<string, (text: string) => boolean> = {
  duration: (text) => parseDuration(text) !== undefined,
  timestamp: (text) => parseTimestamp(text) !== undefined,
  matches: (text) => !(compilePattern(text) instanceof Fault),
};

function argumentIssue(node: Expression): CelIssue | undefined {
  if (node.kind !== 'call' || !Object.hasOwn(tests, node.name)) return undefined;
  const arg = node.args.at(-1);
  if (arg?.kind !== 'literal' || typeof arg.value !== 'string' || tests[node.name]?.(arg.value)) return undefined;
  return { position: arg.position, message: `invalid ${node.name} argument` };
}

type Part = readonly [node: Expression, optional: boolean];

/** The issue for the first element or entry whose type differs from those before it, if any. */
function mixedIssue(checked: Checked, parts: readonly Part[]): CelIssue[] {
  let expected: CelType | undefined;
  for (const [node, optional] of parts) {
    const type = checked.typeOf(node);
    const element = (optional ? unwrapOptional(type) : undefined) ?? type;
    expected ??= element;
    if (sameType(expected, element)) continue;
    const message = `expected type '${formatType(expected)}' but found '${formatType(element)}'`;
    return [{ position: node.position, message }];
  }
  return [];
}

/** Rejects invalid constants, and lists and maps with values of several types, except for the arguments of `format`. */
export function literalIssues(checked: Checked): CelIssue[] {
  const issues: CelIssue[] = [];
  const seen = new Set<Expression>();
  const visit = (node: Expression, mixed: boolean): void => {
    if (seen.has(node)) return;
    seen.add(node);
    const argument = argumentIssue(node);
    if (argument) issues.push(argument);
    if (node.kind === 'list' && !mixed) {
      const parts = node.elements.map(({ value, optional }): Part => [value, optional]);
      issues.push(...mixedIssue(checked, parts));
    }
    if (node.kind === 'map' && !mixed) {
      const keys = node.entries.map(({ key }): Part => [key, false]);
      const values = node.entries.map(({ value, optional }): Part => [value, optional]);
      issues.push(...mixedIssue(checked, keys), ...mixedIssue(checked, values));
    }
    const allowed = mixed || (node.kind === 'call' && node.name === 'format');
    for (const child of childrenOf(node)) visit(child, allowed);
  };
  visit(checked.root, false);
  return issues;
}
