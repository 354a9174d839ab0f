import { type FieldError, fieldError } from '@keelson/core';
import { equalJson, isJsonObject } from '@keelson/core/internal';
import { formatCheck } from './formats.ts';
import { maxPatternWork } from './pattern.ts';
import type { SchemaNode } from './schema-node.ts';

/** Maximum number of applications of schema nodes to values of one object, which limits the time of one validation. */
const maxSteps = 4_000_000;
/** Validation stops at this number of errors, because a response contains fewer of them. */
const maxErrors = 110;

/** Old value of a field; undefined when there is nothing to compare with. */
type Old = unknown;

/** The errors and the remaining budget of one validation. */
class Run {
  errors: FieldError[] = [];
  /** Number of checks. If no alternative is valid, the errors of the one with the most checks are reported. */
  matches = 0;
  readonly budget: { steps: number; patterns: number; exceeded: boolean };

  constructor(budget = { steps: maxSteps, patterns: maxPatternWork, exceeded: false }) {
    this.budget = budget;
  }

  add(error: FieldError): void {
    if (this.errors.length < maxErrors) this.errors.push(error);
  }

  /** Counts a check. Returns false when the limit of errors or steps is reached and the validation must stop. */
  step(): boolean {
    this.matches++;
    if (this.budget.steps-- > 0) return this.errors.length < maxErrors;
    this.budget.exceeded = true;
    return false;
  }
}

/** The field name in errors about the complete object, as in Kubernetes. */
const noField = '<nil>';
const fieldOf = (path: string) => (path === '' ? noField : path.replace(/^\./, ''));

/**
 * Validates a value with its schema. Error texts are those of kube-apiserver. Values that equal the old value are not
 * validated, so that objects that were valid by an earlier schema can still be updated (ratcheting). Sources:
 * `kube-openapi/pkg/validation`, `apiextensions-apiserver/pkg/apiserver/validation`.
 */
export function validateValue(value: unknown, schema: SchemaNode, path: string, old?: Old): FieldError[] {
  const run = new Run();
  check(run, value, schema, path, old);
  if (run.budget.exceeded)
    run.errors.push(fieldError.invalid(fieldOf(path), '', 'the validation of the object by its schema takes too long'));
  return run.errors;
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'bigint') return 'integer';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value;
}

function check(run: Run, value: unknown, schema: SchemaNode, path: string, old: Old): void {
  if (!run.step() || (old !== undefined && equalJson(value, old))) return;
  const type = typeOf(value);
  const { types, props } = schema;
  if (value === null) {
    if (types.length > 0 && props.nullable !== true) typeError(run, schema, path, type);
    checkEnum(run, value, schema, path);
    return;
  }
  const fits = types.length === 0 || types.includes(type) || (type === 'integer' && types.includes('number'));
  if (!fits) typeError(run, schema, path, type);
  else run.matches++;
  checkAlternatives(run, value, schema, path);
  if (typeof value === 'string') checkString(run, value, schema, path);
  else if (typeof value === 'number' || typeof value === 'bigint') checkNumber(run, value, schema, path);
  else if (Array.isArray(value)) checkList(run, value, schema, path, old);
  checkEnum(run, value, schema, path);
  if (isJsonObject(value)) checkObject(run, value, schema, path, old);
}

function typeError(run: Run, { types }: SchemaNode, path: string, type: string): void {
  const name = path.replace(/^\./, '');
  const text = `${name} in body must be of type ${types.join(',')}: ${JSON.stringify(type)}`;
  run.add(fieldError.typeInvalid(fieldOf(path), type, text));
}

function checkEnum(run: Run, value: unknown, { props }: SchemaNode, path: string): void {
  const { enum: values } = props;
  if (values === undefined || values.length === 0 || values.some((one) => equalJson(one, value))) return;
  const shown = values.map((one) => (typeof one === 'string' ? one : JSON.stringify(one)));
  run.add(fieldError.notSupported(fieldOf(path), value, shown));
}

function invalid(run: Run, path: string, value: unknown, text: string): void {
  run.add(fieldError.invalid(fieldOf(path), value, `${path.replace(/^\./, '')} in body ${text}`));
}

/** Length in characters, as code points. */
function lengthOf(text: string): number {
  let length = 0;
  for (const _ of text) length++;
  return length;
}

function checkString(run: Run, value: string, schema: SchemaNode, path: string): void {
  const { maxLength, minLength, format } = schema.props;
  if (maxLength !== undefined && value.length > maxLength && lengthOf(value) > maxLength)
    run.add(fieldError.tooLong(fieldOf(path), maxLength));
  if (
    minLength !== undefined &&
    (value.length < minLength || (value.length < 2 * minLength && lengthOf(value) < minLength))
  )
    invalid(run, path, value, `should be at least ${minLength} chars long`);
  const { pattern } = schema;
  if (pattern !== undefined) {
    run.budget.patterns -= pattern.work(value);
    if (run.budget.patterns < 0) invalid(run, path, '', `is too long to be compared with '${pattern.source}'`);
    else if (!pattern.matches(value)) invalid(run, path, value, `should match '${pattern.source}'`);
  }
  const valid = formatCheck(format);
  if (valid !== undefined && !valid(value)) {
    const name = path.replace(/^\./, '');
    const text = `${name} in body must be of type ${format}: ${JSON.stringify(value)}`;
    run.add(fieldError.typeInvalid(fieldOf(path), value, text));
  }
}

function checkNumber(run: Run, value: number | bigint, { props }: SchemaNode, path: string): void {
  const { multipleOf, maximum, exclusiveMaximum, minimum, exclusiveMinimum } = props;
  if (multipleOf !== undefined && !isMultiple(Number(value), multipleOf))
    invalid(run, path, value, `should be a multiple of ${multipleOf}`);
  if (maximum !== undefined && (exclusiveMaximum ? value >= maximum : value > maximum))
    invalid(run, path, value, `should be less than ${exclusiveMaximum ? '' : 'or equal to '}${maximum}`);
  if (minimum !== undefined && (exclusiveMinimum ? value <= minimum : value < minimum))
    invalid(run, path, value, `should be greater than ${exclusiveMinimum ? '' : 'or equal to '}${minimum}`);
}

/**
 * True if `value` is a multiple of `factor`, with the tolerance of `swag.IsFloat64AJSONInteger`: 0.3 is a multiple of
 * 0.1.
 */
function isMultiple(value: number, factor: number): boolean {
  if (factor <= 0) return false;
  const quotient = factor < 1 ? (1 / factor) * value : value / factor;
  if (!Number.isFinite(quotient)) return false;
  return Math.abs(quotient - Math.round(quotient)) <= 1e-9 * Math.max(1, Math.abs(quotient));
}

function checkList(run: Run, value: readonly unknown[], schema: SchemaNode, path: string, old: Old): void {
  const { items } = schema;
  const { minItems, maxItems } = schema.props;
  if (items !== undefined) {
    const before = oldItems(schema, old);
    for (const [index, item] of value.entries()) {
      if (run.budget.exceeded || run.errors.length >= maxErrors) break;
      check(run, item, items, `${path}[${index}]`, before?.(item));
    }
  }
  if (minItems !== undefined && value.length < minItems)
    invalid(run, path, value.length, `should have at least ${minItems} items`);
  if (maxItems !== undefined && value.length > maxItems)
    run.add(fieldError.tooMany(fieldOf(path), value.length, maxItems));
}

/** The values of the map keys of an item as text; undefined for items of other lists. */
export function mapKeyOf(schema: SchemaNode, item: unknown): string | undefined {
  const keys = schema.props['x-kubernetes-list-map-keys'];
  if (schema.props['x-kubernetes-list-type'] !== 'map' || keys === undefined || !isJsonObject(item)) return undefined;
  return JSON.stringify(keys.map((key) => item[key] ?? null));
}

/** Returns a function that finds the old version of an item; undefined for lists that are not of the type `map`. */
export function oldItems(schema: SchemaNode, old: Old): ((item: unknown) => Old) | undefined {
  if (!Array.isArray(old) || schema.props['x-kubernetes-list-type'] !== 'map') return undefined;
  const byKey = new Map<string, unknown>();
  for (const item of old) {
    const key = mapKeyOf(schema, item);
    if (key !== undefined) byKey.set(key, item);
  }
  return (item) => byKey.get(mapKeyOf(schema, item) ?? '');
}

function checkObject(
  run: Run,
  value: Readonly<Record<string, unknown>>,
  schema: SchemaNode,
  path: string,
  old: Old,
): void {
  const { minProperties, maxProperties, required, additionalProperties } = schema.props;
  const names = Object.keys(value);
  if (minProperties !== undefined && names.length < minProperties)
    invalid(run, path, names.length, `should have at least ${minProperties} properties`);
  if (maxProperties !== undefined && names.length > maxProperties)
    run.add(fieldError.tooMany(fieldOf(path), names.length, maxProperties));
  const before = isJsonObject(old) ? old : undefined;
  for (const name of names) {
    if (run.budget.exceeded || run.errors.length >= maxErrors) return;
    const child = schema.field(name);
    if (child !== undefined) check(run, value[name], child, `${path}.${name}`, before?.[name]);
    else if (additionalProperties === false) {
      const text = `${path.replace(/^\./, '')}.${name} in body is a forbidden property`;
      run.add(fieldError.invalid(fieldOf(path), name, text));
    }
  }
  for (const name of required ?? []) {
    if (!Object.hasOwn(value, name)) run.add(fieldError.required(fieldOf(`${path}.${name}`)));
  }
}

/** Validates `allOf`, `anyOf`, `oneOf` and `not`, without comparing values inside of them with the old value. */
function checkAlternatives(run: Run, value: unknown, schema: SchemaNode, path: string): void {
  const { props } = schema;
  if (!props.anyOf && !props.oneOf && !props.allOf && !props.not) return;
  const name = JSON.stringify(path.replace(/^\./, ''));
  const tried = (alternative: SchemaNode): Run => {
    const inner = new Run(run.budget);
    check(inner, value, alternative, path, undefined);
    return inner;
  };
  const fail = (text: string) => run.add(fieldError.invalid(noField, '', `${name} ${text}`));
  const merge = (other: Run | undefined) => {
    for (const error of other?.errors ?? []) run.add(error);
    run.matches += other?.matches ?? 0;
  };
  const runsOf = (word: 'anyOf' | 'oneOf' | 'allOf') => schema.alternatives(word).map(tried);

  if (props.anyOf?.length && !isIntOrStringPattern(schema, props.anyOf)) {
    const runs = runsOf('anyOf');
    if (!runs.some(({ errors }) => errors.length === 0)) {
      fail('must validate at least one schema (anyOf)');
      merge(bestOf(runs));
    }
  }
  if (props.oneOf?.length) {
    const runs = runsOf('oneOf');
    const valid = runs.filter(({ errors }) => errors.length === 0).length;
    if (valid !== 1) {
      const found = valid === 0 ? 'Found none valid' : `Found ${valid} valid alternatives`;
      fail(`must validate one and only one schema (oneOf). ${found}`);
      if (valid === 0) merge(bestOf(runs));
    }
  }
  if (props.allOf?.length) {
    const runs = runsOf('allOf');
    for (const one of runs) merge(one);
    const valid = runs.filter(({ errors }) => errors.length === 0).length;
    if (valid < runs.length) fail(`must validate all the schemas (allOf)${valid === 0 ? '. None validated' : ''}`);
  }
  if (schema.not !== undefined && tried(schema.not).errors.length === 0) fail('must not validate the schema (not)');
}

/** True for `anyOf` of integer and string in an int-or-string schema, whose type is already checked. */
function isIntOrStringPattern(schema: SchemaNode, anyOf: readonly object[]): boolean {
  return schema.types.length === 2 && anyOf.length === 2 && equalJson(anyOf, [{ type: 'integer' }, { type: 'string' }]);
}

function bestOf(runs: readonly Run[]): Run | undefined {
  return runs.reduce<Run | undefined>(
    (best, run) => (best === undefined || run.matches > best.matches ? run : best),
    undefined,
  );
}
