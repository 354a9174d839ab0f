import { fieldError } from '@keelson/core';
import type { Errors } from '../../../validation/checks.ts';
import {
  checkOneOf,
  checkRequiredName,
  checkRequiredOneOf,
  checkText,
  checkUnique,
} from '../../../validation/checks.ts';
import type { Container, EphemeralContainer, PodSpec } from '../schema/index.ts';
import { checkContainerPorts } from './check-container-ports.ts';
import { checkEnv, checkEnvFrom } from './check-env.ts';
import { checkLifecycle } from './check-handler.ts';
import { checkProbe } from './check-probe.ts';
import { checkResources } from './check-resources.ts';
import { checkSecurityContext } from './check-security-context.ts';
import { checkVolumeDevices, checkVolumeMounts } from './check-volume-mounts.ts';

type Role = 'init' | 'regular' | 'ephemeral';

const pullPolicies = ['Always', 'IfNotPresent', 'Never'];

/** All containers of a pod spec. Names are unique across the three lists, host ports across the regular containers. */
export function checkContainers(spec: PodSpec, path: string, errors: Errors): void {
  const names = new Set<string>();
  const hostPorts = new Set<string>();
  const volumes = new Map((spec.volumes ?? []).map((volume) => [volume.name, volume]));
  const claims = new Set((spec.resourceClaims ?? []).map((claim) => claim.name));
  const lasting = new Set(
    [...(spec.initContainers ?? []), ...(spec.containers ?? [])].map((container) => container.name),
  );
  const grace = spec.terminationGracePeriodSeconds ?? 30;
  const each = (list: readonly (Container | EphemeralContainer)[] | undefined, field: string, role: Role) =>
    list?.forEach((container, i) => {
      const at = `${path}.${field}[${i}]`;
      if (checkRequiredName(container.name, 'dns1123Label', `${at}.name`, errors)) {
        checkUnique(container.name, names, `${at}.name`, errors);
      }
      checkImage(container, at, errors);
      checkContainerPorts(
        container,
        { hostNetwork: spec.hostNetwork === true, hostPorts: role === 'init' ? new Set() : hostPorts },
        at,
        errors,
      );
      checkEnv(container.env, `${at}.env`, errors);
      checkEnvFrom(container.envFrom, `${at}.envFrom`, errors);
      checkVolumeMounts(container, volumes, at, errors);
      checkVolumeDevices(container, volumes, at, errors);
      checkResources(container.resources, claims, `${at}.resources`, errors);
      checkSecurityContext(container.securityContext, spec, `${at}.securityContext`, errors);
      checkTermination(container, at, errors);
      checkByRole(container, role, grace, at, errors);
      if ('targetContainerName' in container) checkTarget(container.targetContainerName, lasting, at, errors);
    });
  if (!spec.containers?.length) errors.push(fieldError.required(`${path}.containers`));
  each(spec.initContainers, 'initContainers', 'init');
  each(spec.containers, 'containers', 'regular');
  each(spec.ephemeralContainers, 'ephemeralContainers', 'ephemeral');
}

function checkImage(container: Container | EphemeralContainer, path: string, errors: Errors): void {
  if (checkText(container.image, `${path}.image`, errors) && container.image.trim() !== container.image) {
    errors.push(fieldError.invalid(`${path}.image`, container.image, 'must not have leading or trailing whitespace'));
  }
  checkRequiredOneOf(container.imagePullPolicy, pullPolicies, `${path}.imagePullPolicy`, errors);
}

function checkTermination(container: Container | EphemeralContainer, path: string, errors: Errors): void {
  const policies = ['FallbackToLogsOnError', 'File'];
  checkRequiredOneOf(container.terminationMessagePolicy, policies, `${path}.terminationMessagePolicy`, errors);
  container.resizePolicy?.forEach((policy, i) => {
    const at = `${path}.resizePolicy[${i}]`;
    checkRequiredOneOf(policy.resourceName, ['cpu', 'memory'], `${at}.resourceName`, errors);
    checkRequiredOneOf(policy.restartPolicy, ['NotRequired', 'RestartContainer'], `${at}.restartPolicy`, errors);
  });
}

/** Validates the fields that depend on the type of the container: regular, init or ephemeral. */
function checkByRole(
  container: Container | EphemeralContainer,
  role: Role,
  grace: number,
  path: string,
  errors: Errors,
): void {
  if (role === 'regular' || (role === 'init' && container.restartPolicy === 'Always')) {
    checkLifecycle(container.lifecycle, grace, `${path}.lifecycle`, errors);
    checkProbe(container.livenessProbe, 'liveness', `${path}.livenessProbe`, errors);
    checkProbe(container.readinessProbe, 'readiness', `${path}.readinessProbe`, errors);
    checkProbe(container.startupProbe, 'startup', `${path}.startupProbe`, errors);
    if (role === 'regular' && container.restartPolicy) {
      errors.push(fieldError.forbidden(`${path}.restartPolicy`, 'may not be set for non-init containers'));
    }
    return;
  }
  const why =
    role === 'init'
      ? 'may not be set for init containers without restartPolicy=Always'
      : 'cannot be set for an Ephemeral Container';
  for (const field of ['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe'] as const) {
    if (container[field]) errors.push(fieldError.forbidden(`${path}.${field}`, why));
  }
  if (role === 'init') {
    checkOneOf(container.restartPolicy, ['Always'], `${path}.restartPolicy`, errors);
    return;
  }
  for (const field of ['ports', 'resizePolicy', 'restartPolicyRules'] as const) {
    if (container[field]?.length) errors.push(fieldError.forbidden(`${path}.${field}`, why));
  }
  container.volumeMounts?.forEach((mount, i) => {
    for (const field of ['subPath', 'subPathExpr'] as const) {
      if (mount[field]) errors.push(fieldError.forbidden(`${path}.volumeMounts[${i}].${field}`, why));
    }
  });
  if (container.restartPolicy) errors.push(fieldError.forbidden(`${path}.restartPolicy`, why));
  if (Object.keys(container.resources ?? {}).length > 0) errors.push(fieldError.forbidden(`${path}.resources`, why));
}

/** Requires that the target of an ephemeral container is a regular or init container. */
function checkTarget(target: string | undefined, lasting: ReadonlySet<string>, path: string, errors: Errors): void {
  if (target && !lasting.has(target)) errors.push(fieldError.notFound(`${path}.targetContainerName`, target));
}
