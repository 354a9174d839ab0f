import { fieldError, type ObjectMeta } from '@keelson/core';
import {
  checkAnnotations,
  checkIp,
  checkLabels,
  checkName,
  checkOneOf,
  checkRange,
  checkRequiredName,
  checkRequiredOneOf,
  checkUnique,
  type Errors,
} from '../../../validation/checks.ts';
import type { PodSpec } from '../schema/index.ts';
import { checkContainers } from './check-containers.ts';
import { checkAffinity, checkGates, checkTolerations, checkTopologySpread } from './check-scheduling.ts';
import { checkPodSecurity } from './check-security-context.ts';
import { checkVolumes } from './check-volumes.ts';
import { checkProfileAnnotations } from './pod-annotations.ts';
import { checkContainerResources, checkPodResources } from './resources.ts';

const maxInt32 = 2147483647;

/** What is validated: a pod, or a template, whose pods get further defaults when they are created. */
export type SpecOf = 'pod' | 'template';

/** Validates the whole spec of a pod or of a pod template: see docs/reference/api-rules.md#validation-of-kinds. */
export function checkPodSpec(spec: PodSpec, of: SpecOf, path: string, errors: Errors): void {
  checkVolumes(spec.volumes, of, `${path}.volumes`, errors);
  checkContainers(spec, of, path, errors);
  checkPodResources(spec, `${path}.resources`, errors);
  checkRequiredOneOf(spec.restartPolicy, ['Always', 'Never', 'OnFailure'], `${path}.restartPolicy`, errors);
  checkLifetime(spec, path, errors);
  checkPodNetwork(spec, path, errors);
  checkPodSecurity(spec, path, errors);
  checkLabels(spec.nodeSelector, `${path}.nodeSelector`, errors);
  checkAffinity(spec.affinity, `${path}.affinity`, errors);
  checkTolerations(spec.tolerations, `${path}.tolerations`, errors);
  checkTopologySpread(spec.topologySpreadConstraints, `${path}.topologySpreadConstraints`, errors);
  checkGates(spec, path, errors);
  checkNamesOfOthers(spec, path, errors);
  checkResourceClaims(spec, `${path}.resourceClaims`, errors);
}

function checkLifetime(spec: PodSpec, path: string, errors: Errors): void {
  checkRange(spec.activeDeadlineSeconds, 1, maxInt32, `${path}.activeDeadlineSeconds`, errors);
  checkOneOf(spec.preemptionPolicy, ['Never', 'PreemptLowerPriority'], `${path}.preemptionPolicy`, errors);
  if (spec.overhead) checkContainerResources({ limits: spec.overhead }, new Set(), `${path}.overhead`, errors);
}

/** Validates the names of referenced objects: service accounts, nodes, classes. */
function checkNamesOfOthers(spec: PodSpec, path: string, errors: Errors): void {
  for (const field of ['serviceAccountName', 'nodeName', 'priorityClassName', 'runtimeClassName'] as const) {
    checkName(spec[field], 'dns1123Subdomain', `${path}.${field}`, errors);
  }
}

function checkResourceClaims(spec: PodSpec, path: string, errors: Errors): void {
  const names = new Set<string>();
  spec.resourceClaims?.forEach((claim, i) => {
    const at = `${path}[${i}]`;
    if (checkRequiredName(claim.name, 'dns1123Label', `${at}.name`, errors)) checkUnique(claim.name, names, at, errors);
    if (!claim.resourceClaimName === !claim.resourceClaimTemplateName) {
      errors.push(
        fieldError.invalid(at, claim.name, 'must specify one of: `resourceClaimName`, `resourceClaimTemplateName`'),
      );
    }
  });
}

/** Validates the pod template of a workload: labels, annotations and spec. */
export function checkPodTemplate(
  template: { readonly metadata?: ObjectMeta; readonly spec: PodSpec },
  path: string,
  errors: Errors,
): void {
  checkLabels(template.metadata?.labels, `${path}.labels`, errors);
  checkAnnotations(template.metadata?.annotations, `${path}.annotations`, errors);
  checkPodSpec(template.spec, 'template', `${path}.spec`, errors);
  const { metadata, spec } = template;
  checkProfileAnnotations(metadata?.annotations, spec, `${path}.annotations`, `${path}.spec`, errors);
  if (template.spec.ephemeralContainers?.length) {
    errors.push(
      fieldError.forbidden(`${path}.spec.ephemeralContainers`, 'ephemeral containers not allowed in pod template'),
    );
  }
}

const dnsPolicies = ['ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None'];
const maxNameservers = 3;
const maxSearches = 32;
const maxSearchLength = 2048;

/** Validates host names, DNS settings and host aliases of a pod. */
export function checkPodNetwork(spec: PodSpec, path: string, errors: Errors): void {
  checkName(spec.hostname, 'dns1123Label', `${path}.hostname`, errors);
  checkName(spec.subdomain, 'dns1123Label', `${path}.subdomain`, errors);
  checkName(spec.hostnameOverride, 'dns1123Subdomain', `${path}.hostnameOverride`, errors);
  checkOneOf(spec.dnsPolicy, dnsPolicies, `${path}.dnsPolicy`, errors);
  checkDnsConfig(spec, `${path}.dnsConfig`, errors);
  spec.hostAliases?.forEach((alias, i) => {
    const at = `${path}.hostAliases[${i}]`;
    checkIp(alias.ip, `${at}.ip`, errors);
    alias.hostnames?.forEach((hostname, j) => {
      checkName(hostname, 'dns1123Subdomain', `${at}.hostnames[${j}]`, errors);
    });
  });
}

function checkDnsConfig(spec: PodSpec, path: string, errors: Errors): void {
  const config = spec.dnsConfig;
  if (spec.dnsPolicy === 'None' && !config?.nameservers?.length) {
    errors.push(
      config
        ? fieldError.required(
            `${path}.nameservers`,
            'must provide at least one DNS nameserver when `dnsPolicy` is None',
          )
        : fieldError.required(path, 'must provide `dnsConfig` when `dnsPolicy` is None'),
    );
    return;
  }
  if (!config) return;
  if ((config.nameservers?.length ?? 0) > maxNameservers) {
    errors.push(
      fieldError.invalid(
        `${path}.nameservers`,
        config.nameservers,
        `must not have more than ${maxNameservers} nameservers`,
      ),
    );
  }
  config.nameservers?.forEach((address, i) => {
    checkIp(address, `${path}.nameservers[${i}]`, errors);
  });
  if ((config.searches?.length ?? 0) > maxSearches) {
    errors.push(
      fieldError.invalid(`${path}.searches`, config.searches, `must not have more than ${maxSearches} search paths`),
    );
  }
  if ((config.searches ?? []).join(' ').length > maxSearchLength) {
    const detail = `must not have more than ${maxSearchLength} characters (including spaces) in the search list`;
    errors.push(fieldError.invalid(`${path}.searches`, config.searches, detail));
  }
  config.searches?.forEach((search, i) => {
    const name = search.endsWith('.') ? search.slice(0, -1) : search;
    if (search !== '.') checkSearch(name, `${path}.searches[${i}]`, errors);
  });
  config.options?.forEach((option, i) => {
    if (!option.name) errors.push(fieldError.required(`${path}.options[${i}]`, 'must not be empty'));
  });
}

const searchLabel = /^_?[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?$/;
const searchLabelSource = '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?';
const searchRule =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start " +
  `and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${searchLabelSource}` +
  `(\\.${searchLabelSource})*')`;
const maxSearch = 253;

/** A search domain: a DNS subdomain whose labels may contain underscores. */
function checkSearch(name: string, path: string, errors: Errors): void {
  const isLong = name.length > maxSearch;
  if (isLong) errors.push(fieldError.invalid(path, name, `must be no more than ${maxSearch} characters`));
  if (!name.split('.', maxSearch).every((label) => searchLabel.test(label))) {
    errors.push(fieldError.invalid(path, name, searchRule));
  }
}
