import { fieldError, labelKeyErrors, labelValueErrors } from '@keelson/core';
import type { Errors } from '../../../validation/checks.ts';
import { checkName, checkRange, checkText, pushInvalid } from '../../../validation/checks.ts';
import { checkLabelSelector } from '../../../validation/labels.ts';
import type {
  Affinity,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  PodAffinity,
  PodAffinityTerm,
} from '../schema/index.ts';

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
    checkNodeSelectorTerm(preferred.preference, `${own}.preference`, errors);
  });
  checkPodAffinity(affinity.podAffinity, `${path}.podAffinity`, errors);
  checkPodAffinity(affinity.podAntiAffinity, `${path}.podAntiAffinity`, errors);
}

function checkWeight(weight: number, path: string, errors: Errors): void {
  checkRange(weight, 1, 100, `${path}.weight`, errors);
}

function checkNodeSelectorTerm(term: NodeSelectorTerm, path: string, errors: Errors): void {
  term.matchExpressions?.forEach((requirement, i) => {
    const at = `${path}.matchExpressions[${i}]`;
    checkRequirementValues(requirement, at, errors);
    pushInvalid(labelKeyErrors(requirement.key), requirement.key, `${at}.key`, errors);
    requirement.values?.forEach((value, j) => {
      pushInvalid(labelValueErrors(value), value, `${at}.values[${j}]`, errors);
    });
  });
  term.matchFields?.forEach((requirement, i) => {
    checkFieldRequirement(requirement, `${path}.matchFields[${i}]`, errors);
  });
}

function checkRequirementValues(requirement: NodeSelectorRequirement, path: string, errors: Errors): void {
  const values = requirement.values ?? [];
  switch (requirement.operator) {
    case 'In':
    case 'NotIn':
      if (values.length === 0) {
        errors.push(fieldError.required(`${path}.values`, "must be specified when `operator` is 'In' or 'NotIn'"));
      }
      break;
    case 'Exists':
    case 'DoesNotExist':
      if (values.length > 0) {
        errors.push(
          fieldError.forbidden(`${path}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
        );
      }
      break;
    case 'Gt':
    case 'Lt':
      if (values.length !== 1) {
        errors.push(
          fieldError.required(`${path}.values`, "must be specified single value when `operator` is 'Lt' or 'Gt'"),
        );
      }
      break;
    default:
      errors.push(fieldError.invalid(`${path}.operator`, requirement.operator, 'not a valid selector operator'));
  }
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
  term.namespaces?.forEach((namespace, i) => {
    checkName(namespace, 'dns1123Label', `${path}.namespaces[${i}]`, errors);
  });
  if (checkText(term.topologyKey, `${path}.topologyKey`, errors)) {
    pushInvalid(labelKeyErrors(term.topologyKey), term.topologyKey, `${path}.topologyKey`, errors);
  }
  if ((term.matchLabelKeys?.length || term.mismatchLabelKeys?.length) && !term.labelSelector) {
    const field = term.matchLabelKeys?.length ? 'matchLabelKeys' : 'mismatchLabelKeys';
    errors.push(fieldError.forbidden(`${path}.${field}`, 'must not be specified when labelSelector is not set'));
  }
}
