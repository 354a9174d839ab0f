import { addErrors, type FieldError, FieldErrorReason, fieldError, isFull } from '@keelson/core';
import { equalJson } from '@keelson/core/internal';
import type { JsonSchemaProps, ValidationRule } from '@keelson/kinds';
import { CelCompileError, CelResultTypeError, type CelType, dynType, maxRequestBytes } from '../../cel/index.ts';
import { compileMessage, compileRule, containsRules, defaultRuleErrors, typeOf } from '../schema/rules.ts';
import { childSchemas } from '../schema/schema-node.ts';

/** Maximum length of all rules of a schema together, which limits the time for checking a definition. */
const maxRuleText = 200_000;
/** Maximum estimated cost of one rule for all values of an object together, as in Kubernetes. */
const maxRuleCost = 10_000_000n;
/** Maximum estimated cost of all rules of a schema together, as in Kubernetes. */
const maxSchemaCost = 100_000_000n;
const shownRules = 4;

/** The total length and cost of the rules of a schema. */
interface Total {
  text: number;
  cost: bigint;
  readonly expensive: { readonly path: string; readonly cost: bigint }[];
}

/** The position of a schema within the schema of the object. */
interface Place {
  readonly path: string;
  readonly root: boolean;
  /** The enclosing list or map whose old and new elements cannot be matched. */
  readonly atomic: string | undefined;
  /** Maximum number of values of this schema in one object; undefined when only the size of the object limits it. */
  readonly count: bigint | undefined;
}

/**
 * Validates the expressions in a schema. Rules that already exist in `old` are not checked again. Source:
 * `ValidateCustomResourceDefinitionOpenAPISchema` and `cel_validation.go` of apiextensions-apiserver.
 */
export function checkRules(schema: JsonSchemaProps, path: string, old: JsonSchemaProps | undefined): FieldError[] {
  if (!containsRules(schema) || (old !== undefined && equalJson(old, schema))) return [];
  const errors: FieldError[] = [];
  const total: Total = { text: 0, cost: 0n, expensive: [] };
  visit(schema, { path, root: true, atomic: undefined, count: 1n }, errors, total);
  if (total.cost <= maxSchemaCost) return errors.length > 0 ? errors : defaultRuleErrors(schema, path);
  total.expensive.sort((a, b) => (a.cost < b.cost ? 1 : a.cost > b.cost ? -1 : 0));
  const detail = 'contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema';
  addErrors(
    errors,
    total.expensive.slice(0, shownRules).map(({ path: at }) => fieldError.forbidden(at, detail)),
  );
  const what = 'x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema';
  addErrors(errors, [fieldError.forbidden(path, excess(what, total.cost, maxSchemaCost))]);
  return errors;
}

function visit(schema: JsonSchemaProps, place: Place, errors: FieldError[], total: Total): void {
  if (isFull(errors) || !containsRules(schema)) return;
  const { path } = place;
  const count = place.count === undefined ? undefined : childCount(schema, place.count);
  for (const [child, at] of childSchemas(schema, path)) {
    const isList = at === `${path}.items`;
    const broken = isList
      ? schema['x-kubernetes-list-type'] !== 'map'
      : schema['x-kubernetes-map-type'] === 'atomic' && at.startsWith(`${path}.properties[`);
    visit(child, { path: at, root: false, atomic: place.atomic ?? (broken ? path : undefined), count }, errors, total);
  }
  const rules = schema['x-kubernetes-validations'] ?? [];
  const type = rules.length === 0 ? dynType : typeOf(schema, place.root);
  if (type === undefined) {
    const detail =
      'internal error: failed to construct type information for x-kubernetes-validations rules: ' +
      'unable to convert structural schema to CEL declarations';
    const field = `${path}.x-kubernetes-validations`;
    addErrors(errors, [{ reason: FieldErrorReason.Internal, field, message: `Internal error: ${detail}` }]);
    return;
  }
  for (const [i, rule] of rules.entries()) {
    const at = `${path}.x-kubernetes-validations[${i}]`;
    total.text += rule.rule.length + (rule.messageExpression?.length ?? 0);
    if (total.text > maxRuleText) {
      errors.push(
        fieldError.forbidden(at, `the rules of a schema may not be longer than ${maxRuleText} characters together`),
      );
      return;
    }
    addErrors(errors, ruleErrors(rule, type, { ...place, path: at }, total));
  }
}

/** Maximum number of values of a child schema, for `count` values of the schema itself. */
function childCount({ type, additionalProperties, maxItems, maxProperties }: JsonSchemaProps, count: bigint) {
  const isMap = type === 'object' && additionalProperties !== undefined;
  if (!isMap && type !== 'array') return count;
  const most = isMap ? maxProperties : maxItems;
  return most === undefined ? undefined : count * BigInt(Math.max(0, most));
}

function ruleErrors(rule: ValidationRule, type: CelType, { path, atomic, count }: Place, total: Total): FieldError[] {
  const errors: FieldError[] = [];
  const fail = (word: string, detail: string) => errors.push(fieldError.invalid(`${path}.${word}`, rule, detail));
  const observe = (word: string, what: string, cost: bigint) => {
    const at = `${path}.${word}`;
    total.cost += cost;
    if (cost >= maxSchemaCost / 100n) total.expensive.push({ path: at, cost });
    if (cost > maxRuleCost) errors.push(fieldError.forbidden(at, excess(`estimated ${what}`, cost, maxRuleCost)));
  };
  const compiled = attempt(() => compileRule(rule, type, true));
  if (compiled instanceof CelResultTypeError) fail('rule', 'cel expression must evaluate to a bool');
  else if (compiled instanceof CelCompileError) fail('rule', `compilation failed: ${compiled.message}`);
  if (compiled instanceof Error) return [...errors, ...unusedOptions(rule, path)];
  // Without a limit, assumes as many values as fit into the largest request, each followed by a comma.
  const most = count ?? BigInt(Math.floor(maxRequestBytes / ((type.minBytes ?? 0) + 1)));
  observe('rule', 'rule cost', (compiled.expression.maxCost ?? 0n) * most);
  const message = attempt(() => compileMessage(rule, type, true));
  if (message instanceof CelResultTypeError) fail('messageExpression', 'messageExpression must evaluate to a string');
  else if (message instanceof CelCompileError) {
    fail('messageExpression', `messageExpression compilation failed: ${message.message}`);
  } else if (message?.maxCost !== undefined) observe('messageExpression', 'messageExpression cost', message.maxCost);
  if (compiled.usesOld && atomic !== undefined) {
    const detail = `oldSelf cannot be used on the uncorrelatable portion of the schema within ${atomic}`;
    errors.push(fieldError.invalid(`${path}.rule`, rule.rule, detail));
  }
  return compiled.usesOld ? errors : [...errors, ...unusedOptions(rule, path)];
}

/** The error for `optionalOldSelf` in a rule that does not use `oldSelf`. */
function unusedOptions({ optionalOldSelf }: ValidationRule, path: string): FieldError[] {
  if (optionalOldSelf === undefined) return [];
  const detail = 'may not be set if oldSelf is not used in rule';
  return [fieldError.invalid(`${path}.optionalOldSelf`, optionalOldSelf, detail)];
}

function attempt<T>(compile: () => T): T | CelCompileError | CelResultTypeError {
  try {
    return compile();
  } catch (error) {
    if (error instanceof CelCompileError || error instanceof CelResultTypeError) return error;
    throw error;
  }
}

const hint =
  '(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)';

function excess(what: string, cost: bigint, limit: bigint): string {
  const factor = Number(cost) / Number(limit);
  return `${what} exceeds budget by factor of ${factorText(factor)} ${hint}`;
}

function factorText(factor: number): string {
  if (factor > 100) return 'more than 100x';
  if (factor < 1.5) return `${factor.toFixed(6)}x`;
  // Go rounds a half to the even digit. The only halves are x.25 and x.75, and `toFixed` rounds x.75 as Go does.
  return `${(factor % 1 === 0.25 ? factor - 0.05 : factor).toFixed(1)}x`;
}
