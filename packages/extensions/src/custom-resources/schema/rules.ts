import { type FieldError, FieldErrorReason, fieldError, isFull, type KubeObject } from '@keelson/core';
import { equalJson, isJsonObject } from '@keelson/core/internal';
import type { JsonSchemaProps, ValidationRule } from '@keelson/kinds';
import { Optional } from '../../cel/base/values.ts';
import {
  boolType,
  CelBudgetError,
  CelCompileError,
  CelEvaluationError,
  type CelType,
  type CompiledExpression,
  CostBudget,
  compileExpression,
  dynType,
  optionalType,
  schemaType,
  stringType,
  type TypeSchema,
  toCelValue,
} from '../../cel/index.ts';
import { complete } from './complete.ts';
import { parseFieldPath } from './field-path.ts';
import { childSchemas, SchemaNode, someSchema } from './schema-node.ts';
import { oldItems } from './validate.ts';

/** Evaluates the rules (`x-kubernetes-validations`) of a schema for an object. */
export type RuleChecks = (object: KubeObject, old: KubeObject | undefined) => FieldError[];

const maxMessageBytes = 5 * 1024;

interface CompiledRule {
  readonly rule: ValidationRule;
  readonly usesOld: boolean;
  /** Type of `self`. */
  readonly type: CelType;
  readonly expression: CompiledExpression;
  readonly message: CompiledExpression | undefined;
}

/** Compiles the expression of a rule. `estimate` adds an estimate of its maximum cost. */
export function compileRule(rule: ValidationRule, type: CelType, estimate = false): Omit<CompiledRule, 'message'> {
  const options = { resultTypes: [boolType], ...(estimate ? { costRoot: type } : {}) };
  try {
    const expression = compileExpression(rule.rule, { ...options, variables: { self: type } });
    return { rule, type, usesOld: false, expression };
  } catch (error) {
    if (!(error instanceof CelCompileError) || !rule.rule.includes('oldSelf')) throw error;
  }
  const variables = { self: type, oldSelf: oldType(rule, type) };
  return { rule, type, usesOld: true, expression: compileExpression(rule.rule, { ...options, variables }) };
}

/** Compiles the message expression of a rule, if it has one. */
export function compileMessage(rule: ValidationRule, type: CelType, estimate = false): CompiledExpression | undefined {
  if (!rule.messageExpression) return undefined;
  const variables = { self: type, oldSelf: oldType(rule, type) };
  const options = { variables, resultTypes: [stringType], ...(estimate ? { costRoot: type } : {}) };
  return compileExpression(rule.messageExpression, options);
}

function oldType({ optionalOldSelf }: ValidationRule, type: CelType): CelType {
  return optionalOldSelf ? optionalType(type) : type;
}

/** The type of `self` in the rules of a schema; undefined when the schema does not determine it. */
export const typeOf = (schema: JsonSchemaProps, root: boolean): CelType | undefined =>
  schemaType(schema as TypeSchema, root);

const hasRules = new WeakMap<JsonSchemaProps, boolean>();

/** True if the schema or a subschema has rules. */
export function containsRules(schema: JsonSchemaProps): boolean {
  let known = hasRules.get(schema);
  if (known === undefined) {
    known =
      (schema['x-kubernetes-validations'] ?? []).length > 0 ||
      childSchemas(schema, '').some(([child]) => containsRules(child));
    hasRules.set(schema, known);
  }
  return known;
}

const compiled = new WeakMap<SchemaNode, readonly CompiledRule[]>();

function rulesOf(node: SchemaNode, root: boolean): readonly CompiledRule[] {
  let rules = compiled.get(node);
  if (rules === undefined) {
    // A stored definition may have rules for values without a type, which are not accepted any more.
    const type = typeOf(node.props, root) ?? dynType;
    rules = (node.props['x-kubernetes-validations'] ?? []).map((rule) => ({
      ...compileRule(rule, type),
      message: compileMessage(rule, type),
    }));
    compiled.set(node, rules);
  }
  return rules;
}

/** The state of one evaluation of all rules for an object. */
interface Evaluation {
  readonly errors: FieldError[];
  readonly budget: CostBudget;
  /** True after a rule has exceeded its budget. The remaining rules are not evaluated. */
  exceeded: boolean;
}

/**
 * Compiles the rules of a schema.
 *
 * @returns undefined for a schema without rules.
 */
export function ruleChecksOf(schema: JsonSchemaProps): RuleChecks | undefined {
  if (!containsRules(schema)) return undefined;
  const root = new SchemaNode(schema);
  return (object, old) => {
    const run: Evaluation = { errors: [], budget: new CostBudget(), exceeded: false };
    evaluate(run, object, old, root, '', false);
    return run.errors;
  };
}

/**
 * Evaluates the rules of a schema for all its defaults together: as for a new value, and as for an unchanged one.
 * Source: `apiserver/schema/defaulting/validation.go`.
 */
export function defaultRuleErrors(schema: JsonSchemaProps, path: string): FieldError[] {
  const run: Evaluation = { errors: [], budget: new CostBudget(), exceeded: false };
  someSchema(schema, path, (props, at) => {
    if (props.default === undefined || !containsRules(props)) return false;
    const node = new SchemaNode(props);
    const value = complete(props.default, node);
    const before = run.errors.length;
    evaluate(run, value, undefined, node, `${at}.default`, false);
    if (run.errors.length === before) evaluate(run, value, value, node, `${at}.default`, false);
    return run.exceeded || isFull(run.errors);
  });
  return run.errors;
}

/** Source: `apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go`. */
function evaluate(run: Evaluation, value: unknown, old: unknown, node: SchemaNode, path: string, kept: boolean): void {
  if (run.exceeded || isFull(run.errors) || value === null || value === undefined || !containsRules(node.props)) return;
  const unchanged = kept || (old !== undefined && equalJson(value, old));
  for (const rule of rulesOf(node, path === '')) {
    if (run.exceeded) return;
    evaluateRule(run, rule, value, old, node, path, unchanged);
  }
  if (Array.isArray(value)) {
    const { items } = node;
    const before = oldItems(node, old);
    for (const [index, item] of items ? value.entries() : [])
      evaluate(run, item, before?.(item), items as SchemaNode, `${path}[${index}]`, unchanged);
  } else if (isJsonObject(value)) {
    const before = node.props['x-kubernetes-map-type'] !== 'atomic' && isJsonObject(old) ? old : undefined;
    for (const [name, item] of Object.entries(value)) {
      const property = node.property(name);
      const child = property ?? node.values;
      const at = property === undefined ? `${path}[${name}]` : path === '' ? name : `${path}.${name}`;
      if (child !== undefined) evaluate(run, item, before?.[name], child, at, unchanged);
    }
  }
}

function evaluateRule(
  run: Evaluation,
  { rule, usesOld, type, expression, message }: CompiledRule,
  value: unknown,
  old: unknown,
  node: SchemaNode,
  path: string,
  unchanged: boolean,
): void {
  if (usesOld && old === undefined && !rule.optionalOldSelf) return;
  const shown = node.props.type ?? '';
  const add = (text: string) => run.errors.push(fieldError.invalid(path === '' ? '<nil>' : path, shown, text));
  const bindings = { self: value, oldSelf: rule.optionalOldSelf ? optionalOf(old, type) : old };
  const name = (rule.message ?? '').trim() || rule.rule.trim();
  try {
    if (expression.evaluate(bindings, run.budget) === true || (unchanged && !usesOld)) return;
  } catch (error) {
    if (!(error instanceof CelEvaluationError)) throw error;
    if (error instanceof CelBudgetError) {
      run.exceeded = true;
      const end = 'no further validation rules will be run';
      add(
        run.budget.remaining <= 0
          ? `validation failed due to running out of cost budget, ${end}`
          : `'${error.message}': ${end} due to call cost exceeds limit for rule: ${name}`,
      );
    } else if (error.message.startsWith('no such overload')) {
      const why = 'call arguments did not match a supported operator, function or macro signature for rule';
      add(`'${error.message}': ${why}: ${name}`);
    } else add(`${error.message} evaluating rule: ${name}`);
    return;
  }
  const field = errorField(path, rule.fieldPath);
  const text =
    (message && messageOf(run, message, bindings)) ?? ((rule.message ?? '').trim() || `failed rule: ${name}`);
  run.errors.push(reasonError(field, shown, text, rule.reason));
}

function optionalOf(old: unknown, type: CelType): unknown {
  return old === undefined ? new Optional(undefined) : new Optional(toCelValue(old, type) as never);
}

/**
 * The evaluated message of a rule; undefined when the evaluation fails or the text is empty, too long or has several
 * lines.
 */
function messageOf(run: Evaluation, message: CompiledExpression, bindings: Readonly<Record<string, unknown>>) {
  try {
    const text = message.evaluate(bindings, run.budget);
    const trimmed = typeof text === 'string' ? text.trim() : '';
    return trimmed === '' || Buffer.byteLength(trimmed) > maxMessageBytes || /[\n\r]/.test(trimmed)
      ? undefined
      : trimmed;
  } catch (error) {
    if (!(error instanceof CelEvaluationError)) throw error;
    return undefined;
  }
}

function errorField(path: string, fieldPath: string | undefined): string {
  const names = fieldPath ? parseFieldPath(fieldPath) : [];
  const below = typeof names === 'string' ? [] : names;
  const text = below.reduce(
    (at, name) => (/[.[\]]/.test(name) ? `${at}[${name}]` : at === '' ? name : `${at}.${name}`),
    path,
  );
  return text === '' ? '<nil>' : text;
}

function reasonError(field: string, value: string, text: string, reason: string | undefined): FieldError {
  if (reason === FieldErrorReason.Required) return fieldError.required(field, text);
  if (reason === FieldErrorReason.Forbidden) return fieldError.forbidden(field, text);
  const error = fieldError.invalid(field, value, text);
  if (reason !== FieldErrorReason.Duplicate) return error;
  return { ...error, reason, message: error.message.replace('Invalid', 'Duplicate') };
}
