import { addErrors, type FieldError, FieldErrorReason, fieldError, isFull, type KubeObject } from '@keelson/core';
import { equalJson, isJsonObject } from '@keelson/core/internal';
import type { JsonSchemaProps, ValidationRule } from '@keelson/kinds';
import { Optional } from '../../cel/base/values.ts';
import {
  boolType,
  CelBudgetError,
  CelCompileError,
  CelEvaluationError,
  CelResultTypeError,
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
import { parseFieldPath } from './field-path.ts';
import { childSchemas, SchemaNode } from './schema-node.ts';
import { oldItems } from './validate.ts';

/** Evaluates the rules (`x-kubernetes-validations`) of a schema for an object. */
export type RuleChecks = (object: KubeObject, old: KubeObject | undefined) => FieldError[];

/** Characters of all rules of a schema together; it bounds the time in which a definition is checked. */
const maxRuleText = 200_000;
const maxMessageBytes = 5 * 1024;

interface CompiledRule {
  readonly rule: ValidationRule;
  readonly usesOld: boolean;
  /** Type of `self`. */
  readonly type: CelType;
  readonly expression: CompiledExpression;
  readonly message: CompiledExpression | undefined;
}

function compileRule(rule: ValidationRule, type: CelType): CompiledRule {
  const oldSelf = rule.optionalOldSelf ? optionalType(type) : type;
  const resultTypes = [boolType];
  const message = () =>
    rule.messageExpression
      ? compileExpression(rule.messageExpression, { variables: { self: type, oldSelf }, resultTypes: [stringType] })
      : undefined;
  try {
    const expression = compileExpression(rule.rule, { variables: { self: type }, resultTypes });
    return { rule, type, usesOld: false, expression, message: message() };
  } catch (error) {
    if (!(error instanceof CelCompileError) || !rule.rule.includes('oldSelf')) throw error;
  }
  const expression = compileExpression(rule.rule, { variables: { self: type, oldSelf }, resultTypes });
  return { rule, type, usesOld: true, expression, message: message() };
}

const typeOf = (schema: JsonSchemaProps, root: boolean): CelType => schemaType(schema as TypeSchema, root) ?? dynType;

const hasRules = new WeakMap<JsonSchemaProps, boolean>();

/** True for a schema with rules in it or below it. */
function containsRules(schema: JsonSchemaProps): boolean {
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
    const type = typeOf(node.props, root);
    rules = (node.props['x-kubernetes-validations'] ?? []).map((rule) => compileRule(rule, type));
    compiled.set(node, rules);
  }
  return rules;
}

/** One evaluation of all rules for an object. */
interface Evaluation {
  readonly errors: FieldError[];
  readonly budget: CostBudget;
  /** A rule exceeded its budget; no further rule is evaluated. */
  exceeded: boolean;
}

/** @returns undefined for a schema without rules. */
export function ruleChecksOf(schema: JsonSchemaProps): RuleChecks | undefined {
  if (!containsRules(schema)) return undefined;
  const root = new SchemaNode(schema);
  return (object, old) => {
    const run: Evaluation = { errors: [], budget: new CostBudget(), exceeded: false };
    evaluate(run, object, old, root, '', false);
    return run.errors;
  };
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

/** The text of a message expression; undefined when it has none that can be shown. */
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

/** Errors of the expressions in a schema. Rules that `old` has already are not examined again. */
export function checkRules(schema: JsonSchemaProps, path: string, old: JsonSchemaProps | undefined): FieldError[] {
  if (!containsRules(schema) || (old !== undefined && equalJson(old, schema))) return [];
  const errors: FieldError[] = [];
  const total = { text: 0 };
  visit(schema, path, undefined, true, errors, total);
  return errors;
}

/** `atomic` is the path of the list or map in which old and new values cannot be compared. */
function visit(
  schema: JsonSchemaProps,
  path: string,
  atomic: string | undefined,
  root: boolean,
  errors: FieldError[],
  total: { text: number },
): void {
  if (isFull(errors) || !containsRules(schema)) return;
  const rules = schema['x-kubernetes-validations'] ?? [];
  const type = rules.length === 0 ? dynType : typeOf(schema, root);
  for (const [i, rule] of rules.entries()) {
    const at = `${path}.x-kubernetes-validations[${i}]`;
    total.text += rule.rule.length + (rule.messageExpression?.length ?? 0);
    if (total.text > maxRuleText) {
      errors.push(
        fieldError.forbidden(at, `the rules of a schema may not be longer than ${maxRuleText} characters together`),
      );
      return;
    }
    addErrors(errors, compileErrors(rule, type, atomic, at));
  }
  for (const [child, at] of childSchemas(schema, path)) {
    const isList = at === `${path}.items`;
    const broken = isList
      ? schema['x-kubernetes-list-type'] !== 'map'
      : schema['x-kubernetes-map-type'] === 'atomic' && at.startsWith(`${path}.properties[`);
    visit(child, at, atomic ?? (broken ? path : undefined), false, errors, total);
  }
}

function compileErrors(rule: ValidationRule, type: CelType, atomic: string | undefined, path: string): FieldError[] {
  try {
    const { usesOld } = compileRule(rule, type);
    if (usesOld && atomic !== undefined) {
      const detail = `oldSelf cannot be used on the uncorrelatable portion of the schema within ${atomic}`;
      return [fieldError.invalid(`${path}.rule`, rule.rule, detail)];
    }
    if (!usesOld && rule.optionalOldSelf !== undefined) {
      const detail = 'may not be set if oldSelf is not used in rule';
      return [fieldError.invalid(`${path}.optionalOldSelf`, rule.optionalOldSelf, detail)];
    }
    return [];
  } catch (error) {
    const wrongType = error instanceof CelResultTypeError;
    if (!wrongType && !(error instanceof CelCompileError)) throw error;
    const inMessage = error.message.includes('string') && wrongType ? true : !wrongType && isValidRule(rule, type);
    const word = inMessage ? 'messageExpression' : 'rule';
    const detail = wrongType
      ? `${inMessage ? 'messageExpression ' : 'cel expression '}must evaluate to a ${inMessage ? 'string' : 'bool'}`
      : `${inMessage ? 'messageExpression ' : ''}compilation failed: ${error.message}`;
    return [fieldError.invalid(`${path}.${word}`, rule, detail)];
  }
}

function isValidRule({ messageExpression: _, ...rule }: ValidationRule, type: CelType): boolean {
  try {
    compileRule(rule, type);
    return true;
  } catch {
    return false;
  }
}
