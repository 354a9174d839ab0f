import { randomUUID } from 'node:crypto';
import {
  defineKind,
  type FieldError,
  fieldError,
  type KindDefinition,
  qualifiedNameErrors,
  quantityMilliValue,
} from '@keelson/core';
import { checkUnique, type Errors, newErrors, pushInvalid } from '../../validation/checks.ts';
import { compareAmounts } from '../../validation/quantities.ts';
import { allowsOvercommit, checkContainerResourceName, checkResourceName } from '../../validation/resource-names.ts';
import { type LimitRangeItem, LimitRangeSchema, type LimitRange as LimitRangeType } from './schema/index.ts';

const types = ['Container', 'PersistentVolumeClaim', 'Pod'];

/** Limits what each object of a namespace may use, and gives defaults; admission applies it. */
export const LimitRange: KindDefinition<LimitRangeType> = defineKind({
  group: '',
  version: 'v1',
  kind: 'LimitRange',
  names: { shortNames: ['limits'] },
  schema: LimitRangeSchema,
  strategy: {
    generation: 'none',
    allowCreateOnUpdate: true,
    default({ spec }) {
      for (const item of spec.limits) if (item.type === 'Container') defaultContainerItem(item);
    },
    prepareForCreate(object) {
      if (!object.metadata?.name) object.metadata = { ...object.metadata, name: randomUUID() };
    },
    validate: validateLimitRange,
  },
  columns: [],
});
export type LimitRange = LimitRangeType;

/**
 * Completes the defaults of a limit range: the default limit is the maximum, and the default request is the default
 * limit or, without one, the minimum.
 */
function defaultContainerItem(item: LimitRangeItem): void {
  const limits = { ...item.max, ...item.default };
  const requests = { ...item.min, ...limits, ...item.defaultRequest };
  if (Object.keys(limits).length > 0) item.default = limits;
  if (Object.keys(requests).length > 0) item.defaultRequest = requests;
}

function validateLimitRange({ spec }: LimitRangeType): FieldError[] {
  const errors = newErrors();
  const seen = new Set<string>();
  spec.limits.forEach((item, i) => {
    const path = `spec.limits[${i}]`;
    checkType(item.type, `${path}.type`, errors);
    checkUnique(item.type, seen, `${path}.type`, errors);
    checkItem(item, path, errors);
  });
  return errors;
}

function checkType(type: string, path: string, errors: Errors): void {
  const details = qualifiedNameErrors(type);
  pushInvalid(details, type, path, errors);
  if (details.length > 0 || type.includes('/') || types.includes(type)) return;
  errors.push(fieldError.invalid(path, type, 'must be a standard limit type or fully qualified'));
}

const amountFields = ['max', 'min', 'default', 'defaultRequest', 'maxLimitRequestRatio'] as const;

function checkItem(item: LimitRangeItem, path: string, errors: Errors): void {
  const check = item.type === 'Pod' || item.type === 'Container' ? checkContainerResourceName : checkResourceName;
  const names = new Set<string>();
  for (const field of amountFields) {
    const given = Object.keys(item[field] ?? {});
    if (item.type === 'Pod' && (field === 'default' || field === 'defaultRequest')) {
      const text = "may not be specified when `type` is 'Pod'";
      if (given.length > 0) errors.push(fieldError.forbidden(`${path}.${field}`, text));
      continue;
    }
    for (const name of given) {
      check(name, `${path}.${field}[${name}]`, errors);
      names.add(name);
    }
    if (field === 'defaultRequest' && item.type === 'PersistentVolumeClaim') checkHasStorage(item, path, errors);
  }
  for (const name of names) checkAmounts(item, name, path, errors);
}

function checkHasStorage({ min = {}, max = {} }: LimitRangeItem, path: string, errors: Errors): void {
  if (Object.hasOwn(min, 'storage') || Object.hasOwn(max, 'storage')) return;
  const text = 'either minimum or maximum storage value is required, but neither was provided';
  errors.push(fieldError.required(`${path}.limits`, text));
}

/** Validates the amounts of one resource. The order must be: minimum, default request, default limit, maximum. */
function checkAmounts(item: LimitRangeItem, name: string, path: string, errors: Errors): void {
  const amountIn = (field: (typeof amountFields)[number]) => own(item[field], name);
  const isPod = item.type === 'Pod';
  const [min, max] = [amountIn('min'), amountIn('max')];
  const limit = isPod ? undefined : amountIn('default');
  const request = isPod ? undefined : amountIn('defaultRequest');
  const ratio = amountIn('maxLimitRequestRatio');
  const add = (field: string, value: string | undefined, text: string) =>
    errors.push(fieldError.invalid(`${path}.${field}[${name}]`, value, text));

  if (exceeds(min, max)) add('min', min, `min value ${min} is greater than max value ${max}`);
  if (exceeds(min, request)) {
    add('defaultRequest', request, `min value ${min} is greater than default request value ${request}`);
  }
  if (exceeds(request, max)) {
    add('defaultRequest', request, `default request value ${request} is greater than max value ${max}`);
  }
  if (exceeds(request, limit)) {
    add('defaultRequest', request, `default request value ${request} is greater than default limit value ${limit}`);
  }
  if (exceeds(min, limit)) add('default', min, `min value ${min} is greater than default value ${limit}`);
  if (exceeds(limit, max)) add('default', max, `default value ${limit} is greater than max value ${max}`);
  if (exceeds('1', ratio)) add('maxLimitRequestRatio', ratio, `ratio ${ratio} is less than 1`);
  if (ratio !== undefined && min !== undefined && max !== undefined) {
    const highest = Number(quantityMilliValue(max)) / Number(quantityMilliValue(min));
    if (Number(quantityMilliValue(ratio)) / 1000 > highest) {
      add('maxLimitRequestRatio', ratio, `ratio ${ratio} is greater than max/min = ${highest.toFixed(6)}`);
    }
  }
  if (allowsOvercommit(name) || limit === undefined || request === undefined) return;
  if (compareAmounts(limit, request) !== 0) {
    add('defaultRequest', request, `default value ${limit} must equal to defaultRequest value ${request} in ${name}`);
  }
}

function own(amounts: Record<string, string> | undefined, name: string): string | undefined {
  return amounts && Object.hasOwn(amounts, name) ? amounts[name] : undefined;
}

function exceeds(a: string | undefined, b: string | undefined): boolean {
  return a !== undefined && b !== undefined && (compareAmounts(a, b) ?? 0) > 0;
}
