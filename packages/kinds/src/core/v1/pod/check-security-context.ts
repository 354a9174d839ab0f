import { fieldError } from '@keelson/core';
import type { Errors } from '../../../validation/checks.ts';
import { checkOneOf, checkRange, checkRequiredOneOf, checkText, checkUnique } from '../../../validation/checks.ts';
import { checkDescendingPath } from '../../../validation/paths.ts';
import type { AppArmorProfile, PodSecurityContext, PodSpec, SeccompProfile, SecurityContext } from '../schema/index.ts';
import { checkWindowsOptions, checkWindowsPod } from './check-windows.ts';
import { eachContainer } from './default-pod-spec.ts';

const maxId = 2147483647;
const sysctlName = /^[a-z0-9]([-_a-z0-9]*[a-z0-9])?([./][a-z0-9]([-_a-z0-9]*[a-z0-9])?)*$/;
/** The pattern of Kubernetes for error messages. It matches the same names as {@link sysctlName}. */
const sysctlSource = '^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$';

/** Security settings of one container. */
export function checkSecurityContext(
  context: SecurityContext | undefined,
  spec: PodSpec,
  path: string,
  errors: Errors,
): void {
  if (!context) return;
  checkRange(context.runAsUser, 0, maxId, `${path}.runAsUser`, errors);
  checkRange(context.runAsGroup, 0, maxId, `${path}.runAsGroup`, errors);
  checkOneOf(context.procMount, ['Default', 'Unmasked'], `${path}.procMount`, errors);
  if (context.procMount === 'Unmasked' && spec.hostUsers !== false) {
    errors.push(
      fieldError.invalid(`${path}.procMount`, context.procMount, '`hostUsers` must be false to use `Unmasked`'),
    );
  }
  checkSeccomp(context.seccompProfile, `${path}.seccompProfile`, errors);
  checkAppArmor(context.appArmorProfile, `${path}.appArmorProfile`, errors);
  if (context.windowsOptions) checkWindowsOptions(context.windowsOptions, `${path}.windowsOptions`, errors);
  if (context.windowsOptions && spec.os?.name === 'linux') {
    errors.push(fieldError.forbidden(`${path}.windowsOptions`, 'windows options cannot be set for a linux pod'));
  }
  if (context.allowPrivilegeEscalation !== false) return;
  const at = `${path}.allowPrivilegeEscalation`;
  if (context.privileged) {
    errors.push(
      fieldError.invalid(at, false, 'cannot set `allowPrivilegeEscalation` to false and `privileged` to true'),
    );
  }
  if (context.capabilities?.add?.some((capability) => capability === 'CAP_SYS_ADMIN')) {
    errors.push(
      fieldError.invalid(
        at,
        false,
        'cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN',
      ),
    );
  }
}

/** Validates the security context of a pod and its use of host namespaces. */
export function checkPodSecurity(spec: PodSpec, path: string, errors: Errors): void {
  if (spec.shareProcessNamespace && spec.hostPID) {
    const detail = 'ShareProcessNamespace and HostPID cannot both be enabled';
    errors.push(fieldError.invalid(`${path}.shareProcessNamespace`, true, detail));
  }
  if (spec.hostUsers === false) {
    // Kubernetes spells two of the fields in this way.
    const fields = { hostNetwork: 'hostNetwork', hostPID: 'HostPID', hostIPC: 'HostIPC' } as const;
    for (const [field, shown] of Object.entries(fields)) {
      if (spec[field as keyof typeof fields]) {
        errors.push(fieldError.forbidden(`${path}.${shown}`, 'when `hostUsers` is false'));
      }
    }
  }
  const context = spec.securityContext;
  if (context) checkPodSecurityContext(context, spec, `${path}.securityContext`, errors);
  checkHostProcess(spec, path, errors);
  if (spec.os && checkText(spec.os.name, `${path}.os.name`, errors)) {
    checkOneOf(spec.os.name, ['linux', 'windows'], `${path}.os`, errors);
  }
  if (spec.os?.name === 'windows') checkWindowsPod(spec, path, errors);
}

function checkPodSecurityContext(context: PodSecurityContext, spec: PodSpec, path: string, errors: Errors): void {
  checkRange(context.runAsUser, 0, maxId, `${path}.runAsUser`, errors);
  checkRange(context.runAsGroup, 0, maxId, `${path}.runAsGroup`, errors);
  checkRange(context.fsGroup, 0, maxId, `${path}.fsGroup`, errors);
  context.supplementalGroups?.forEach((group, i) => {
    checkRange(group, 0, maxId, `${path}.supplementalGroups[${i}]`, errors);
  });
  checkOneOf(context.fsGroupChangePolicy, ['Always', 'OnRootMismatch'], `${path}.fsGroupChangePolicy`, errors);
  checkOneOf(context.supplementalGroupsPolicy, ['Merge', 'Strict'], `${path}.supplementalGroupsPolicy`, errors);
  checkOneOf(context.seLinuxChangePolicy, ['MountOption', 'Recursive'], `${path}.seLinuxChangePolicy`, errors);
  checkSeccomp(context.seccompProfile, `${path}.seccompProfile`, errors);
  checkAppArmor(context.appArmorProfile, `${path}.appArmorProfile`, errors);
  if (context.windowsOptions) checkWindowsOptions(context.windowsOptions, `${path}.windowsOptions`, errors);
  if (context.windowsOptions && spec.os?.name === 'linux') {
    errors.push(fieldError.forbidden(`${path}.windowsOptions`, 'windows options cannot be set for a linux pod'));
  }
  checkSysctls(context, spec, path, errors);
}

function checkSysctls(context: PodSecurityContext, spec: PodSpec, path: string, errors: Errors): void {
  const names = new Set<string>();
  context.sysctls?.forEach((sysctl, i) => {
    const at = `${path}.sysctls[${i}].name`;
    if (!checkText(sysctl.name, at, errors)) return;
    if (sysctl.name.length > 253 || !sysctlName.test(sysctl.name)) {
      errors.push(
        fieldError.invalid(at, sysctl.name, `must have at most 253 characters and match regex ${sysctlSource}`),
      );
    }
    const dotted = sysctl.name.replaceAll('/', '.');
    if (dotted.startsWith('net.') && spec.hostNetwork) {
      errors.push(fieldError.invalid(at, sysctl.name, "may not be specified when 'hostNetwork' is true"));
    }
    if ((dotted.startsWith('kernel.') || dotted.startsWith('fs.mqueue.')) && spec.hostIPC) {
      errors.push(fieldError.invalid(at, sysctl.name, "may not be specified when 'hostIPC' is true"));
    }
    checkUnique(sysctl.name, names, at, errors);
  });
}

function checkSeccomp(profile: SeccompProfile | undefined, path: string, errors: Errors): void {
  if (!profile) return;
  checkRequiredOneOf(profile.type, ['Localhost', 'RuntimeDefault', 'Unconfined'], `${path}.type`, errors);
  const file = profile.localhostProfile;
  if (profile.type !== 'Localhost') {
    if (file !== undefined) {
      errors.push(
        fieldError.invalid(`${path}.localhostProfile`, file, 'can only be set when seccomp type is Localhost'),
      );
    }
  } else if (!file) {
    errors.push(fieldError.required(`${path}.localhostProfile`, 'must be set when seccomp type is Localhost'));
  } else checkDescendingPath(file, `${path}.localhostProfile`, errors);
}

function checkAppArmor(profile: AppArmorProfile | undefined, path: string, errors: Errors): void {
  if (!profile) return;
  checkRequiredOneOf(profile.type, ['Localhost', 'RuntimeDefault', 'Unconfined'], `${path}.type`, errors);
  const name = profile.localhostProfile;
  if (profile.type === 'Localhost') {
    if (name?.trim() && name.trim() !== name) {
      errors.push(fieldError.invalid(`${path}.localhostProfile`, name, 'must not be padded with whitespace'));
    } else if (!name?.trim())
      errors.push(fieldError.required(`${path}.localhostProfile`, 'must be set when AppArmor type is Localhost'));
  } else if (name !== undefined) {
    errors.push(
      fieldError.invalid(`${path}.localhostProfile`, name, 'can only be set when AppArmor type is Localhost'),
    );
  }
}

/** Requires that all containers of a pod are processes of the host or none, and that such a pod has its network. */
function checkHostProcess(spec: PodSpec, path: string, errors: Errors): void {
  const pod = spec.securityContext?.windowsOptions?.hostProcess;
  let count = 0;
  let processes = 0;
  eachContainer(spec, path, ({ securityContext }, at) => {
    const own = securityContext?.windowsOptions?.hostProcess;
    count++;
    if (own ?? pod) processes++;
    if (pod === undefined || own === undefined || own === pod) return;
    const detail = `pod hostProcess value must be identical if both are specified, was ${pod}`;
    errors.push(fieldError.invalid(`${at}.securityContext.windowsOptions.hostProcess`, own, detail));
  });
  if (processes === 0) return;
  if (processes !== count) {
    const detail = 'If pod contains any hostProcess containers then all containers must be HostProcess containers';
    errors.push(fieldError.invalid(path, '', detail));
  }
  if (spec.hostNetwork) return;
  const detail = 'hostNetwork must be true if pod contains any hostProcess containers';
  errors.push(fieldError.invalid(`${path}.hostNetwork`, false, detail));
}
