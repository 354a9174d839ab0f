import { dns1123SubdomainErrors, fieldError } from '@keelson/core';
import { type Errors, pushInvalid } from '../../../validation/checks.ts';
import type { PodSpec, WindowsSecurityContextOptions } from '../schema/index.ts';
import { eachContainer } from './default-pod-spec.ts';

const maxSpecKib = 64;
const maxDomain = 256;
const maxUser = 104;
const netBios = /^[^\\/:*?|"<>.][^\\/:*?|"<>]{0,14}$/;
const domainName =
  /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$/;

/** Validates the options of containers of Windows. */
export function checkWindowsOptions(options: WindowsSecurityContextOptions, path: string, errors: Errors): void {
  const { gmsaCredentialSpecName: specName, gmsaCredentialSpec: spec, runAsUserName } = options;
  if (specName !== undefined) {
    pushInvalid(dns1123SubdomainErrors(specName), specName, `${path}.gmsaCredentialSpecName`, errors);
  }
  if (spec === '') {
    errors.push(fieldError.invalid(`${path}.gmsaCredentialSpec`, spec, 'gmsaCredentialSpec cannot be an empty string'));
  } else if (spec !== undefined && Buffer.byteLength(spec) > maxSpecKib * 1024) {
    const detail = `gmsaCredentialSpec size must be under ${maxSpecKib} KiB`;
    errors.push(fieldError.invalid(`${path}.gmsaCredentialSpec`, spec, detail));
  }
  if (runAsUserName === undefined) return;
  const details = userNameErrors(runAsUserName).map((detail) => `runAsUserName${detail}`);
  pushInvalid(details, runAsUserName, `${path}.runAsUserName`, errors);
}

/** What is wrong with `DOMAIN\\USER` or `USER`. */
function userNameErrors(name: string): string[] {
  if (name === '') return [' cannot be an empty string'];
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the rule is about them
  if (/[\u0000-\u001f\u007f]/.test(name)) return [' cannot contain control characters'];
  const parts = name.split('\\', 3);
  if (parts.length > 2) return [' cannot contain more than one backslash'];
  const user = parts.at(-1) ?? '';
  const domain = parts.length === 2 ? (parts[0] ?? '') : undefined;
  const errors: string[] = [];
  if (domain !== undefined && Buffer.byteLength(domain) >= maxDomain) {
    errors.push(`'s Domain length must be under ${maxDomain} characters`);
  }
  if (domain !== undefined && !netBios.test(domain) && !(domain.length < maxDomain && domainName.test(domain))) {
    errors.push("'s Domain doesn't match the NetBios nor the DNS format");
  }
  if (user === '') errors.push("'s User cannot be empty");
  else if (Buffer.byteLength(user) > maxUser) {
    errors.push(`'s User length must not be longer than ${maxUser} characters`);
  }
  if (/^[. ]+$/.test(user)) errors.push("'s User cannot contain only periods or spaces");
  if (/["/\\:;|=,+*?<>@[\]]/.test(user)) {
    errors.push(`'s User cannot contain the following characters: "/\\:;|=,+*?<>@[]`);
  }
  return errors;
}

const podFields = [
  'appArmorProfile',
  'seLinuxOptions',
  'seccompProfile',
  'fsGroup',
  'fsGroupChangePolicy',
  'sysctls',
  'runAsUser',
  'runAsGroup',
  'supplementalGroups',
  'supplementalGroupsPolicy',
  'seLinuxChangePolicy',
] as const;
const containerFields = [
  'appArmorProfile',
  'seLinuxOptions',
  'seccompProfile',
  'capabilities',
  'readOnlyRootFilesystem',
  'privileged',
  'allowPrivilegeEscalation',
  'procMount',
  'runAsUser',
  'runAsGroup',
] as const;

/** Rejects fields that Windows pods do not support. */
export function checkWindowsPod(spec: PodSpec, path: string, errors: Errors): void {
  const refuse = (at: string) => errors.push(fieldError.forbidden(at, 'cannot be set for a windows pod'));
  if (spec.hostUsers !== undefined) refuse(`${path}.hostUsers`);
  for (const field of ['hostPID', 'hostIPC'] as const) if (spec[field]) refuse(`${path}.${field}`);
  if (spec.shareProcessNamespace !== undefined) refuse(`${path}.shareProcessNamespace`);
  for (const field of podFields) {
    if (spec.securityContext?.[field] !== undefined) refuse(`${path}.securityContext.${field}`);
  }
  eachContainer(spec, path, ({ securityContext: own }, at) => {
    for (const field of containerFields) if (own?.[field] !== undefined) refuse(`${at}.securityContext.${field}`);
  });
}
