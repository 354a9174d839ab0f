import { fieldError, labelKeyErrors, labelValueErrors, qualifiedNameErrors } from '@keelson/core';
import { checkExpression } from '@keelson/core/internal';
import {
  checkLabelSelector,
  checkName,
  checkOneOf,
  checkPositive,
  checkRequiredOneOf,
  checkUnique,
  type Errors,
  pushInvalid,
} from '../../../validation/checks.ts';
import type {
  Affinity,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  PodAffinity,
  PodAffinityTerm,
  PodSpec,
  Toleration,
  TopologySpreadConstraint,
} from '../schema/index.ts';
import { checkLabelKeys } from './label-keys.ts';

const effects = ['NoExecute', 'NoSchedule', 'PreferNoSchedule'];

/** Validates tolerations. */
export function checkTolerations(tolerations: readonly Toleration[] | undefined, path: string, errors: Errors): void {
  tolerations?.forEach((toleration, i) => {
    const at = `${path}[${i}]`;
    if (toleration.key) pushInvalid(labelKeyErrors(toleration.key), toleration.key, `${at}.key`, errors);
    else if (toleration.operator !== 'Exists') {
      const detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"';
      errors.push(fieldError.invalid(`${at}.operator`, toleration.operator ?? '', detail));
    }
    if (toleration.tolerationSeconds !== undefined && toleration.effect !== 'NoExecute') {
      errors.push(
        fieldError.invalid(
          `${at}.effect`,
          toleration.effect ?? '',
          "effect must be 'NoExecute' when `tolerationSeconds` is set",
        ),
      );
    }
    checkTolerationValue(toleration, at, errors);
    checkOneOf(toleration.effect, effects, `${at}.effect`, errors);
  });
}

function checkTolerationValue(toleration: Toleration, path: string, errors: Errors): void {
  const value = toleration.value ?? '';
  switch (toleration.operator) {
    case undefined:
    case '':
    case 'Equal':
      pushInvalid(labelValueErrors(value), value, `${path}.operator`, errors);
      break;
    case 'Exists':
      if (value)
        errors.push(fieldError.invalid(`${path}.operator`, value, "value must be empty when `operator` is 'Exists'"));
      break;
    case 'Lt':
    case 'Gt':
      if (!/^(0|-?[1-9]\d*)$/.test(value))
        errors.push(fieldError.invalid(`${path}.value`, value, 'must be an integer'));
      break;
    default:
      checkOneOf(toleration.operator, ['Equal', 'Exists', 'Gt', 'Lt'], `${path}.operator`, errors);
  }
}

/** Validates topology spread constraints. Pairs of topologyKey and whenUnsatisfiable are unique. */
export function checkTopologySpread(
  constraints: readonly TopologySpreadConstraint[] | undefined,
  path: string,
  errors: Errors,
): void {
  const seen = new Set<string>();
  constraints?.forEach((constraint, i) => {
    const at = `${path}[${i}]`;
    checkPositive(constraint.maxSkew, `${at}.maxSkew`, errors, 'zero');
    if (!constraint.topologyKey) errors.push(fieldError.required(`${at}.topologyKey`, 'can not be empty'));
    checkRequiredOneOf(
      constraint.whenUnsatisfiable,
      ['DoNotSchedule', 'ScheduleAnyway'],
      `${at}.whenUnsatisfiable`,
      errors,
    );
    checkUnique(
      `{${constraint.topologyKey}, ${constraint.whenUnsatisfiable}}`,
      seen,
      `${at}.{topologyKey, whenUnsatisfiable}`,
      errors,
    );
    checkPositive(constraint.minDomains, `${at}.minDomains`, errors, 'zero');
    if (constraint.minDomains !== undefined && constraint.whenUnsatisfiable !== 'DoNotSchedule') {
      const action = constraint.whenUnsatisfiable;
      const detail = `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${action}`;
      errors.push(fieldError.invalid(`${at}.minDomains`, constraint.minDomains, detail));
    }
    checkOneOf(constraint.nodeAffinityPolicy, ['Honor', 'Ignore'], `${at}.nodeAffinityPolicy`, errors);
    checkOneOf(constraint.nodeTaintsPolicy, ['Honor', 'Ignore'], `${at}.nodeTaintsPolicy`, errors);
    checkLabelKeys(constraint, at, errors);
    checkLabelSelector(constraint.labelSelector, `${at}.labelSelector`, errors);
  });
}

/** Validates scheduling gates and readiness gates. */
export function checkGates(spec: PodSpec, path: string, errors: Errors): void {
  const seen = new Set<string>();
  spec.schedulingGates?.forEach((gate, i) => {
    const at = `${path}.schedulingGates[${i}]`;
    pushInvalid(qualifiedNameErrors(gate.name), gate.name, at, errors);
    checkUnique(gate.name, seen, at, errors);
  });
  if (spec.schedulingGates?.length && spec.nodeName) {
    errors.push(fieldError.forbidden(`${path}.nodeName`, 'cannot be set until all schedulingGates have been cleared'));
  }
  spec.readinessGates?.forEach((gate, i) => {
    pushInvalid(
      qualifiedNameErrors(gate.conditionType),
      gate.conditionType,
      `${path}.readinessGates[${i}].conditionType`,
      errors,
    );
  });
}

/** Validates node affinity, pod affinity and pod anti-affinity. */
export function checkAffinity(affinity: Affinity | undefined, path: string, errors: Errors): void {
  if (!affinity) return;
  const node = affinity.nodeAffinity;
  const at = `${path}.nodeAffinity`;
  const required = node?.requiredDuringSchedulingIgnoredDuringExecution;
  if (required) {
    const terms = `${at}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms`;
    if (!required.nodeSelectorTerms?.length) {
      errors.push(fieldError.required(terms, 'must have at least one node selector term'));
    }
    required.nodeSelectorTerms?.forEach((term, i) => {
      checkNodeSelectorTerm(term, `${terms}[${i}]`, errors);
    });
  }
  node?.preferredDuringSchedulingIgnoredDuringExecution?.forEach((preferred, i) => {
    const own = `${at}.preferredDuringSchedulingIgnoredDuringExecution[${i}]`;
    checkWeight(preferred.weight, own, errors);
    checkNodeSelectorTerm(preferred.preference, `${own}.preference`, errors, true);
  });
  checkPodAffinity(affinity.podAffinity, `${path}.podAffinity`, errors);
  checkPodAffinity(affinity.podAntiAffinity, `${path}.podAntiAffinity`, errors);
}

function checkWeight(weight: number, path: string, errors: Errors): void {
  if (weight < 1 || weight > 100) {
    errors.push(fieldError.invalid(`${path}.weight`, weight, 'must be in the range 1-100'));
  }
}

/** `anyValues`: values need not be values of labels, as in preferences, for which Kubernetes only warns. */
export function checkNodeSelectorTerm(term: NodeSelectorTerm, path: string, errors: Errors, anyValues = false): void {
  term.matchExpressions?.forEach((requirement, i) => {
    checkExpression(requirement, `${path}.matchExpressions[${i}]`, errors, { ofNodes: true, anyValues });
  });
  term.matchFields?.forEach((requirement, i) => {
    checkFieldRequirement(requirement, `${path}.matchFields[${i}]`, errors);
  });
}

/** Validates a requirement on node fields: only `metadata.name` with a single value is supported. */
function checkFieldRequirement(requirement: NodeSelectorRequirement, path: string, errors: Errors): void {
  if (requirement.operator !== 'In' && requirement.operator !== 'NotIn') {
    errors.push(fieldError.invalid(`${path}.operator`, requirement.operator, 'not a valid selector operator'));
  } else if (requirement.values?.length !== 1) {
    errors.push(
      fieldError.required(
        `${path}.values`,
        "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
      ),
    );
  }
  if (requirement.key !== 'metadata.name') {
    errors.push(fieldError.invalid(`${path}.key`, requirement.key, 'not a valid field selector key'));
  } else
    requirement.values?.forEach((value, i) => {
      checkName(value, 'dns1123Subdomain', `${path}.values[${i}]`, errors);
    });
}

function checkPodAffinity(affinity: PodAffinity | undefined, path: string, errors: Errors): void {
  affinity?.requiredDuringSchedulingIgnoredDuringExecution?.forEach((term, i) => {
    checkPodAffinityTerm(term, `${path}.requiredDuringSchedulingIgnoredDuringExecution[${i}]`, errors);
  });
  affinity?.preferredDuringSchedulingIgnoredDuringExecution?.forEach((preferred, i) => {
    const at = `${path}.preferredDuringSchedulingIgnoredDuringExecution[${i}]`;
    checkWeight(preferred.weight, at, errors);
    checkPodAffinityTerm(preferred.podAffinityTerm, `${at}.podAffinityTerm`, errors);
  });
}

function checkPodAffinityTerm(term: PodAffinityTerm, path: string, errors: Errors): void {
  checkLabelSelector(term.labelSelector, `${path}.labelSelector`, errors);
  checkLabelSelector(term.namespaceSelector, `${path}.namespaceSelector`, errors);
  term.namespaces?.forEach((namespace) => {
    checkName(namespace, 'dns1123Label', `${path}.namespace`, errors);
  });
  checkLabelKeys(term, path, errors);
  if (!term.topologyKey) errors.push(fieldError.required(`${path}.topologyKey`, 'can not be empty'));
  pushInvalid(labelKeyErrors(term.topologyKey), term.topologyKey, `${path}.topologyKey`, errors);
}
