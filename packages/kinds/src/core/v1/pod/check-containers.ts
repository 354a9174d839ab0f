import {
  configMapKeyErrors,
  dns1123SubdomainErrors,
  envVarNameErrors,
  fieldError,
  portNameErrors,
} from '@keelson/core';
import {
  checkOneOf,
  checkRequiredName,
  checkRequiredOneOf,
  checkText,
  checkUnique,
  type Errors,
  pushInvalid,
} from '../../../validation/checks.ts';
import { checkPortNumber, protocols } from '../../../validation/ports.ts';
import type { Container, EnvFromSource, EnvVar, EnvVarSource, EphemeralContainer, PodSpec } from '../schema/index.ts';
import { checkFieldRef, checkResourceFieldRef, envFieldPaths } from './check-downward-references.ts';
import { checkLifecycle, checkProbe } from './check-handlers.ts';
import type { SpecOf } from './check-pod-spec.ts';
import { checkSecurityContext } from './check-security-context.ts';
import { checkVolumeDevices, checkVolumeMounts } from './check-volumes.ts';
import { checkContainerResources } from './resources.ts';

type Role = 'init' | 'regular' | 'ephemeral';

const pullPolicies = ['Always', 'IfNotPresent', 'Never'];

/** All containers of a pod spec. Names are unique across the three lists, host ports across the regular containers. */
export function checkContainers(spec: PodSpec, of: SpecOf, path: string, errors: Errors): void {
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
      checkImage(container, of, at, errors);
      checkContainerPorts(container, role === 'init' ? new Set() : hostPorts, at, errors);
      if (spec.hostNetwork && role === 'regular') checkHostPorts(container, of, at, errors);
      checkEnv(container.env, `${at}.env`, errors);
      checkEnvFrom(container.envFrom, `${at}.envFrom`, errors);
      checkVolumeMounts(container, volumes, at, errors);
      checkVolumeDevices(container, volumes, at, errors);
      checkContainerResources(container.resources, claims, `${at}.resources`, errors);
      checkSecurityContext(container.securityContext, spec, `${at}.securityContext`, errors);
      checkTermination(container, at, errors);
      checkResizePolicy(container, spec.restartPolicy, `${at}.resizePolicy`, errors);
      checkByRole(container, role, grace, at, errors);
      if ('targetContainerName' in container) checkTarget(container.targetContainerName, lasting, at, errors);
    });
  if (!spec.containers?.length) errors.push(fieldError.required(`${path}.containers`));
  // In this order a repeated name is an error of the init container, and not of the container.
  each(spec.containers, 'containers', 'regular');
  each(spec.initContainers, 'initContainers', 'init');
  each(spec.ephemeralContainers, 'ephemeralContainers', 'ephemeral');
}

function checkImage(container: Container | EphemeralContainer, of: SpecOf, path: string, errors: Errors): void {
  const hasImage = checkText(container.image, `${path}.image`, errors);
  if (hasImage && of === 'pod' && container.image?.trim() !== container.image) {
    errors.push(fieldError.invalid(`${path}.image`, container.image, 'must not have leading or trailing whitespace'));
  }
  checkRequiredOneOf(container.imagePullPolicy, pullPolicies, `${path}.imagePullPolicy`, errors);
}

function checkTermination(container: Container | EphemeralContainer, path: string, errors: Errors): void {
  const policies = ['FallbackToLogsOnError', 'File'];
  checkRequiredOneOf(container.terminationMessagePolicy, policies, `${path}.terminationMessagePolicy`, errors);
}

function checkResizePolicy(
  { resizePolicy }: Container | EphemeralContainer,
  podPolicy: string | undefined,
  path: string,
  errors: Errors,
): void {
  const resources = new Set<string>();
  resizePolicy?.forEach(({ resourceName, restartPolicy }, i) => {
    checkUnique(resourceName, resources, `${path}[${i}]`, errors);
    checkRequiredOneOf(resourceName, ['cpu', 'memory'], path, errors);
    checkRequiredOneOf(restartPolicy, ['NotRequired', 'RestartContainer'], path, errors);
    if (podPolicy !== 'Never' || restartPolicy === 'NotRequired') return;
    const detail = "must be 'NotRequired' when `restartPolicy` is 'Never'";
    errors.push(fieldError.invalid(path, restartPolicy, detail));
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

/** Environment variables of a container. */
export function checkEnv(env: readonly EnvVar[] | undefined, path: string, errors: Errors): void {
  env?.forEach((variable, i) => {
    const at = `${path}[${i}]`;
    if (checkText(variable.name, `${at}.name`, errors)) {
      pushInvalid(envVarNameErrors(variable.name), variable.name, `${at}.name`, errors);
    }
    if (!variable.valueFrom) return;
    if (variable.value) {
      errors.push(fieldError.invalid(`${at}.valueFrom`, '', 'may not be specified when `value` is not empty'));
    }
    checkValueFrom(variable.valueFrom, `${at}.valueFrom`, errors);
  });
}

function checkValueFrom(source: EnvVarSource, path: string, errors: Errors): void {
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef } = source;
  const count = [fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef].filter(Boolean).length;
  if (count === 0) {
    const detail =
      'must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`';
    errors.push(fieldError.invalid(path, '', detail));
  } else if (count > 1) {
    errors.push(fieldError.invalid(path, '', 'may not have more than one field specified at a time'));
  }
  if (fieldRef) checkFieldRef(fieldRef, envFieldPaths, `${path}.fieldRef`, errors);
  if (resourceFieldRef) checkResourceFieldRef(resourceFieldRef, false, `${path}.resourceFieldRef`, errors);
  if (configMapKeyRef) checkKeyRef(configMapKeyRef, `${path}.configMapKeyRef`, errors);
  if (secretKeyRef) checkKeyRef(secretKeyRef, `${path}.secretKeyRef`, errors);
  if (fileKeyRef) {
    checkRequiredName(fileKeyRef.volumeName, 'dns1123Label', `${path}.fileKeyRef.volumeName`, errors);
    checkText(fileKeyRef.path, `${path}.fileKeyRef.path`, errors);
    checkText(fileKeyRef.key, `${path}.fileKeyRef.key`, errors);
  }
}

function checkKeyRef(ref: { name?: string; key?: string }, path: string, errors: Errors): void {
  pushInvalid(dns1123SubdomainErrors(ref.name ?? ''), ref.name ?? '', `${path}.name`, errors);
  if (checkText(ref.key, `${path}.key`, errors))
    pushInvalid(configMapKeyErrors(ref.key), ref.key, `${path}.key`, errors);
}

/** Validates ConfigMaps and Secrets that are the source of environment variables. */
export function checkEnvFrom(sources: readonly EnvFromSource[] | undefined, path: string, errors: Errors): void {
  sources?.forEach((source, i) => {
    const at = `${path}[${i}]`;
    if (source.prefix) pushInvalid(envVarNameErrors(source.prefix), source.prefix, `${at}.prefix`, errors);
    const { configMapRef, secretRef } = source;
    if (configMapRef) checkRequiredName(configMapRef.name, 'dns1123Subdomain', `${at}.configMapRef.name`, errors);
    if (secretRef) checkRequiredName(secretRef.name, 'dns1123Subdomain', `${at}.secretRef.name`, errors);
    if (!configMapRef && !secretRef) {
      errors.push(fieldError.invalid(at, '', 'must specify one of: `configMapRef` or `secretRef`'));
    } else if (configMapRef && secretRef) {
      errors.push(fieldError.invalid(at, '', 'may not have more than one field specified at a time'));
    }
  });
}

/**
 * Validates the ports of a container. Names are unique in the container, host ports in the pod: `hostPorts` collects
 * those of all containers.
 */
export function checkContainerPorts(
  container: Container | EphemeralContainer,
  hostPorts: Set<string>,
  path: string,
  errors: Errors,
): void {
  const names = new Set<string>();
  container.ports?.forEach((port, i) => {
    const at = `${path}.ports[${i}]`;
    if (port.name) {
      pushInvalid(portNameErrors(port.name), port.name, `${at}.name`, errors);
      checkUnique(port.name, names, `${at}.name`, errors);
    }
    if (!port.containerPort) errors.push(fieldError.required(`${at}.containerPort`));
    else checkPortNumber(port.containerPort, `${at}.containerPort`, errors);
    checkRequiredOneOf(port.protocol, protocols, `${at}.protocol`, errors);
    if (!port.hostPort) return;
    checkPortNumber(port.hostPort, `${at}.hostPort`, errors);
    const key = `${port.protocol ?? 'TCP'}/${port.hostIP ?? ''}/${port.hostPort}`;
    checkUnique(key, hostPorts, `${at}.hostPort`, errors);
  });
}

/** With the network of the node a container port is the host port; templates may leave the host port out. */
function checkHostPorts(container: Container | EphemeralContainer, of: SpecOf, path: string, errors: Errors): void {
  container.ports?.forEach(({ containerPort, hostPort = 0 }, i) => {
    if (hostPort === containerPort || (hostPort === 0 && of === 'template')) return;
    const detail = 'must match `containerPort` when `hostNetwork` is true';
    errors.push(fieldError.invalid(`${path}.ports[${i}].hostPort`, hostPort, detail));
  });
}
