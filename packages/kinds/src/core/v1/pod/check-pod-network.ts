import { fieldError } from '@keelson/core';
import type { Errors } from '../../../validation/checks.ts';
import { checkIp, checkName, checkOneOf, checkText } from '../../../validation/checks.ts';
import type { PodSpec } from '../schema/index.ts';

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
    if (search !== '.') checkName(name.replaceAll('_', '-'), 'dns1123Subdomain', `${path}.searches[${i}]`, errors);
  });
  config.options?.forEach((option, i) => {
    checkText(option.name, `${path}.options[${i}].name`, errors);
  });
}
