import { dns1123LabelErrors, fieldError, pathSegmentErrors, qualifiedNameErrors } from '@keelson/core';
import { checkNonNegative, checkText, type Errors, pushInvalid } from '../../validation/checks.ts';
import { compareAmounts, isNegativeAmount } from '../../validation/quantities.ts';
import type {
  CrossVersionObjectReference,
  HorizontalPodAutoscalerSpec,
  HorizontalPodAutoscalerStatus,
  HPAScalingRules,
  MetricIdentifier,
  MetricSpec,
  MetricTarget,
} from './schema/index.ts';

const maxPeriod = 1800;
const maxWindow = 3600;

/** Validates the spec of a HorizontalPodAutoscaler of all versions, in the form of autoscaling/v2. */
export function checkAutoscaler(spec: HorizontalPodAutoscalerSpec, errors: Errors): void {
  const { minReplicas, maxReplicas } = spec;
  if (minReplicas !== undefined && minReplicas < 1) {
    errors.push(fieldError.invalid('spec.minReplicas', minReplicas, 'must be greater than or equal to 1'));
  }
  if (maxReplicas < 1) errors.push(fieldError.invalid('spec.maxReplicas', maxReplicas, 'must be greater than 0'));
  if (minReplicas !== undefined && maxReplicas < minReplicas) {
    const detail = 'must be greater than or equal to `minReplicas`';
    errors.push(fieldError.invalid('spec.maxReplicas', maxReplicas, detail));
  }
  const inCore = spec.scaleTargetRef.kind === 'ReplicationController';
  checkReference(spec.scaleTargetRef, inCore, 'spec.scaleTargetRef', errors);
  for (const [i, metric] of (spec.metrics ?? []).entries()) checkMetric(metric, `spec.metrics[${i}]`, errors);
  for (const direction of ['scaleUp', 'scaleDown'] as const) {
    const rules = spec.behavior?.[direction];
    if (rules) checkRules(rules, `spec.behavior.${direction}`, errors);
  }
}

/** Validates a reference to an object. `inCore` permits a reference without an API group. */
function checkReference(reference: CrossVersionObjectReference, inCore: boolean, path: string, errors: Errors): void {
  for (const field of ['kind', 'name'] as const) {
    const text = reference[field];
    if (checkText(text, `${path}.${field}`, errors)) {
      pushInvalid(pathSegmentErrors(text), text, `${path}.${field}`, errors);
    }
  }
  const { apiVersion = '' } = reference;
  const slashes = apiVersion.split('/').length - 1;
  if (slashes > 1) {
    const detail = `unexpected GroupVersion string: ${apiVersion.slice(0, 200)}`;
    errors.push(fieldError.invalid(`${path}.apiVersion`, apiVersion, detail));
  } else if (!inCore && (slashes === 0 || apiVersion.startsWith('/'))) {
    errors.push(fieldError.invalid(`${path}.apiVersion`, apiVersion, 'apiVersion must specify API group'));
  }
}

function checkRules(rules: HPAScalingRules, path: string, errors: Errors): void {
  const { stabilizationWindowSeconds: window, selectPolicy, policies = [], tolerance } = rules;
  if (window !== undefined && window < 0) {
    const detail = 'must be greater than or equal to zero';
    errors.push(fieldError.invalid(`${path}.stabilizationWindowSeconds`, window, detail));
  }
  if (window !== undefined && window > maxWindow) {
    const detail = `must be less than or equal to ${maxWindow}`;
    errors.push(fieldError.invalid(`${path}.stabilizationWindowSeconds`, window, detail));
  }
  const choices = ['Disabled', 'Max', 'Min'];
  if (selectPolicy !== undefined && !choices.includes(selectPolicy)) {
    errors.push(fieldError.notSupported(`${path}.selectPolicy`, selectPolicy, choices));
  }
  if (policies.length === 0) errors.push(fieldError.required(`${path}.policies`, 'must specify at least one Policy'));
  for (const [i, { type, value, periodSeconds }] of policies.entries()) {
    const at = `${path}.policies[${i}]`;
    if (type !== 'Pods' && type !== 'Percent') {
      errors.push(fieldError.notSupported(`${at}.type`, type, ['Percent', 'Pods']));
    }
    if (value <= 0) errors.push(fieldError.invalid(`${at}.value`, value, 'must be greater than zero'));
    if (periodSeconds <= 0) {
      errors.push(fieldError.invalid(`${at}.periodSeconds`, periodSeconds, 'must be greater than zero'));
    }
    if (periodSeconds > maxPeriod) {
      const detail = `must be less than or equal to ${maxPeriod}`;
      errors.push(fieldError.invalid(`${at}.periodSeconds`, periodSeconds, detail));
    }
  }
  if (tolerance !== undefined && isNegativeAmount(tolerance)) {
    errors.push(fieldError.invalid(`${path}.tolerance`, tolerance, 'must be greater than or equal to 0'));
  }
}

/**
 * Names of the fields for metric sources in the order of their validation. Only the first source that is set is
 * validated.
 */
const sources = ['object', 'external', 'pods', 'resource', 'containerResource'] as const;
type Source = (typeof sources)[number];

const fieldOfType: ReadonlyMap<string, Source> = new Map([
  ['ContainerResource', 'containerResource'],
  ['External', 'external'],
  ['Object', 'object'],
  ['Pods', 'pods'],
  ['Resource', 'resource'],
]);

function checkMetric(metric: MetricSpec, path: string, errors: Errors): void {
  const expected = fieldOfType.get(metric.type);
  if (metric.type === '') errors.push(fieldError.required(`${path}.type`, 'must specify a metric source type'));
  if (!expected) errors.push(fieldError.notSupported(`${path}.type`, metric.type, [...fieldOfType.keys()]));
  const present = sources.filter((source) => metric[source]);
  if (present[0]) checkSource(metric, present[0], `${path}.${present[0]}`, errors);
  if (expected && !metric[expected]) {
    const detail = 'must populate information for the given metric source';
    errors.push(fieldError.required(`${path}.${expected}`, detail));
  }
  if (present.length === 1) return;
  for (const source of present) {
    if (source === expected) continue;
    errors.push(fieldError.forbidden(`${path}.${source}`, 'must populate the given metric source only'));
  }
}

function checkSource(metric: MetricSpec, source: Source, path: string, errors: Errors): void {
  const { object, external, pods, resource, containerResource } = metric;
  const averageValue = `${path}.target.averageValue`;
  if (source === 'object' && object) {
    checkReference(object.describedObject, true, `${path}.describedObject`, errors);
    checkIdentifier(object.metric, `${path}.metric`, errors);
    checkTarget(object.target, `${path}.target`, errors);
    if (object.target.value === undefined && object.target.averageValue === undefined) {
      errors.push(fieldError.required(averageValue, 'must set either a target value or averageValue'));
    }
  } else if (source === 'external' && external) {
    checkIdentifier(external.metric, `${path}.metric`, errors);
    checkTarget(external.target, `${path}.target`, errors);
    const { value, averageValue: average } = external.target;
    if (value === undefined && average === undefined) {
      errors.push(fieldError.required(averageValue, 'must set either a target value for metric or a per-pod target'));
    } else if (value !== undefined && average !== undefined) {
      const detail = 'may not set both a target value for metric and a per-pod target';
      errors.push(fieldError.forbidden(`${path}.target.value`, detail));
    }
  } else if (source === 'pods' && pods) {
    checkIdentifier(pods.metric, `${path}.metric`, errors);
    checkTarget(pods.target, `${path}.target`, errors);
    if (pods.target.averageValue === undefined) {
      errors.push(fieldError.required(averageValue, 'must specify a positive target averageValue'));
    }
  } else {
    const used = resource ?? containerResource;
    if (used) checkResource(used, path, errors);
  }
}

function checkResource(
  source: { readonly name: string; readonly container?: string; readonly target: MetricTarget },
  path: string,
  errors: Errors,
): void {
  const { name, container, target } = source;
  if (name === '') errors.push(fieldError.required(`${path}.name`, 'must specify a resource name'));
  else if (container !== undefined) pushInvalid(qualifiedNameErrors(name), name, `${path}.name`, errors);
  if (container === '') errors.push(fieldError.required(`${path}.container`, 'must specify a container'));
  else if (container !== undefined) pushInvalid(dns1123LabelErrors(container), container, `${path}.container`, errors);
  checkTarget(target, `${path}.target`, errors);
  if (target.averageUtilization === undefined && target.averageValue === undefined) {
    const detail = 'must set either a target raw value or a target utilization';
    errors.push(fieldError.required(`${path}.target.averageUtilization`, detail));
  } else if (target.averageUtilization !== undefined && target.averageValue !== undefined) {
    const detail = 'may not set both a target raw value and a target utilization';
    errors.push(fieldError.forbidden(`${path}.target.averageValue`, detail));
  }
}

function checkIdentifier({ name }: MetricIdentifier, path: string, errors: Errors): void {
  if (name === '') errors.push(fieldError.required(`${path}.name`, 'must specify a metric name'));
  else pushInvalid(pathSegmentErrors(name), name, `${path}.name`, errors);
}

function checkTarget(
  { type, value, averageValue, averageUtilization }: MetricTarget,
  path: string,
  errors: Errors,
): void {
  if (type === '') errors.push(fieldError.required(`${path}.type`, 'must specify a metric target type'));
  if (type !== 'Utilization' && type !== 'Value' && type !== 'AverageValue') {
    errors.push(fieldError.invalid(`${path}.type`, type, 'must be either Utilization, Value, or AverageValue'));
  }
  for (const [field, amount] of [
    ['value', value],
    ['averageValue', averageValue],
  ] as const) {
    if (amount !== undefined && (compareAmounts(amount, '0') ?? 1) <= 0) {
      errors.push(fieldError.invalid(`${path}.${field}`, amount, 'must be positive'));
    }
  }
  if (averageUtilization !== undefined && averageUtilization < 1) {
    errors.push(fieldError.invalid(`${path}.averageUtilization`, averageUtilization, 'must be greater than 0'));
  }
}

/** Validates the status of a HorizontalPodAutoscaler of all versions. */
export function checkAutoscalerStatus(
  status: Pick<HorizontalPodAutoscalerStatus, 'currentReplicas' | 'desiredReplicas'> | undefined,
  errors: Errors,
): void {
  checkNonNegative(status?.currentReplicas, 'status.currentReplicas', errors);
  checkNonNegative(status?.desiredReplicas, 'status.desiredReplicas', errors);
}
