import { fieldError, qualifiedNameErrors } from '@keelson/core';
import { checkNonNegative, type Errors, invalidWithoutValue, pushInvalid } from '../../validation/checks.ts';
import { countIndexes } from './indexes.ts';
import type {
  JobSpec,
  PodFailurePolicyOnExitCodesRequirement,
  PodFailurePolicyRule,
  SuccessPolicyRule,
} from './schema/index.ts';

const maxRules = 20;
const maxExitCodes = 255;
const maxPatterns = 20;
const maxIndexesLength = 64 * 1024;
const actions = ['Count', 'FailIndex', 'FailJob', 'Ignore'];
const operators = ['In', 'NotIn'];
const statuses = ['False', 'True', 'Unknown'];

/** Rejects an empty value, with a message that lists the valid values, and values that are not supported. */
function checkWord(value: string, supported: readonly string[], path: string, errors: Errors): void {
  const list = supported.map((word) => JSON.stringify(word)).join(' ');
  if (value === '') errors.push(fieldError.required(path, `valid values: [${list}]`));
  else if (!supported.includes(value)) errors.push(fieldError.notSupported(path, value, supported));
}

/** Validates the pod failure policy, which determines the effect of failed pods on a job. */
export function checkPodFailurePolicy(spec: JobSpec, path: string, errors: Errors): void {
  const rules = spec.podFailurePolicy?.rules ?? [];
  if (rules.length > maxRules) errors.push(fieldError.tooMany(`${path}.rules`, rules.length, maxRules));
  const { containers = [], initContainers = [] } = spec.template.spec;
  const names = new Set([...containers, ...initContainers].map(({ name }) => name));
  for (const [i, rule] of rules.slice(0, maxRules).entries())
    checkRule(rule, spec, names, `${path}.rules[${i}]`, errors);
}

function checkRule(
  rule: PodFailurePolicyRule,
  spec: JobSpec,
  names: ReadonlySet<string>,
  path: string,
  errors: Errors,
): void {
  const { action, onExitCodes, onPodConditions = [] } = rule;
  if (action !== 'FailIndex') checkWord(action, actions, `${path}.action`, errors);
  else if (spec.backoffLimitPerIndex === undefined) {
    errors.push(fieldError.invalid(`${path}.action`, action, 'requires the backoffLimitPerIndex to be set'));
  }
  if (onExitCodes) checkExitCodes(onExitCodes, names, `${path}.onExitCodes`, errors);
  if (onPodConditions.length > maxPatterns) {
    errors.push(fieldError.tooMany(`${path}.onPodConditions`, onPodConditions.length, maxPatterns));
  }
  for (const [i, { type, status }] of onPodConditions.slice(0, maxPatterns).entries()) {
    const at = `${path}.onPodConditions[${i}]`;
    pushInvalid(qualifiedNameErrors(type), type, `${at}.type`, errors);
    checkWord(status, statuses, `${at}.status`, errors);
  }
  if (onExitCodes && onPodConditions.length > 0) {
    errors.push(invalidWithoutValue(path, 'specifying both OnExitCodes and OnPodConditions is not supported'));
  } else if (!onExitCodes && onPodConditions.length === 0) {
    errors.push(invalidWithoutValue(path, 'specifying one of OnExitCodes and OnPodConditions is required'));
  }
}

function checkExitCodes(
  { containerName, operator, values }: PodFailurePolicyOnExitCodesRequirement,
  names: ReadonlySet<string>,
  path: string,
  errors: Errors,
): void {
  checkWord(operator, operators, `${path}.operator`, errors);
  if (containerName !== undefined && !names.has(containerName)) {
    const detail = 'must be one of the container or initContainer names in the pod template';
    errors.push(fieldError.invalid(`${path}.containerName`, containerName, detail));
  }
  if (values.length === 0) errors.push(fieldError.invalid(`${path}.values`, values, 'at least one value is required'));
  if (values.length > maxExitCodes) errors.push(fieldError.tooMany(`${path}.values`, values.length, maxExitCodes));
  const seen = new Set<number>();
  for (const [i, value] of values.slice(0, maxExitCodes).entries()) {
    const at = `${path}.values[${i}]`;
    if (operator === 'In' && value === 0) {
      errors.push(fieldError.invalid(at, value, 'must not be 0 for the In operator'));
    }
    if (seen.has(value)) errors.push(fieldError.duplicate(at, value));
    seen.add(value);
  }
  if (values.some((value, i) => i > 0 && value < (values[i - 1] ?? 0))) {
    errors.push(fieldError.invalid(`${path}.values`, values, 'must be ordered'));
  }
}

/**
 * Validates the success policy, which determines when an indexed job succeeds before all its indexes have succeeded.
 */
export function checkSuccessPolicy(spec: JobSpec, path: string, errors: Errors): void {
  const rules = spec.successPolicy?.rules ?? [];
  if (rules.length === 0) {
    const detail = 'at least one rules must be specified when the successPolicy is specified';
    errors.push(fieldError.required(`${path}.rules`, detail));
  }
  if (rules.length > maxRules) errors.push(fieldError.tooMany(`${path}.rules`, rules.length, maxRules));
  for (const [i, rule] of rules.slice(0, maxRules).entries()) {
    checkSuccessRule(rule, spec.completions ?? 0, `${path}.rules[${i}]`, errors);
  }
}

function checkSuccessRule(
  { succeededIndexes, succeededCount }: SuccessPolicyRule,
  completions: number,
  path: string,
  errors: Errors,
): void {
  if (succeededCount === undefined && succeededIndexes === undefined) {
    const detail = 'at least one of succeededCount or succeededIndexes must be specified';
    errors.push(fieldError.required(path, detail));
  }
  let indexes = 0;
  if (succeededIndexes !== undefined) {
    const at = `${path}.succeededIndexes`;
    if (succeededIndexes.length > maxIndexesLength) errors.push(fieldError.tooLong(at, maxIndexesLength));
    const counted = countIndexes(succeededIndexes, completions);
    if ('count' in counted) indexes = counted.count;
    else {
      errors.push(fieldError.invalid(at, succeededIndexes, `error parsing succeededIndexes: ${counted.problem}`));
    }
  }
  if (succeededCount === undefined) return;
  const at = `${path}.succeededCount`;
  checkNonNegative(succeededCount, at, errors);
  if (succeededCount > completions) {
    const detail = `must be less than or equal to ${completions} (the number of specified completions)`;
    errors.push(fieldError.invalid(at, succeededCount, detail));
  }
  if (succeededIndexes !== undefined && succeededCount > indexes) {
    const detail = `must be less than or equal to ${indexes} (the number of indexes in the specified succeededIndexes field)`;
    errors.push(fieldError.invalid(at, succeededCount, detail));
  }
}
