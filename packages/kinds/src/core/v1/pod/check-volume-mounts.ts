import { fieldError } from '@keelson/core';
import type { Errors } from '../../../validation/checks.ts';
import { checkOneOf, checkText } from '../../../validation/checks.ts';
import { checkDescendingPath, checkNoBackSteps } from '../../../validation/paths.ts';
import type { Container, EphemeralContainer, Volume, VolumeMount } from '../schema/index.ts';

type Volumes = ReadonlyMap<string, Volume>;

/** Validates volume mounts: existing volumes, unique mount paths, sub-paths inside the volume. */
export function checkVolumeMounts(
  container: Container | EphemeralContainer,
  volumes: Volumes,
  path: string,
  errors: Errors,
): void {
  const places = new Set<string>();
  const devices = new Set((container.volumeDevices ?? []).map((device) => device.devicePath));
  container.volumeMounts?.forEach((mount, i) => {
    const at = `${path}.volumeMounts[${i}]`;
    if (checkText(mount.name, `${at}.name`, errors) && !volumes.has(mount.name)) {
      errors.push(fieldError.notFound(`${at}.name`, mount.name));
    }
    if (checkText(mount.mountPath, `${at}.mountPath`, errors)) {
      if (places.has(mount.mountPath))
        errors.push(fieldError.invalid(`${at}.mountPath`, mount.mountPath, 'must be unique'));
      if (devices.has(mount.mountPath)) {
        errors.push(
          fieldError.invalid(`${at}.mountPath`, mount.mountPath, 'must not already exist as a path in volumeDevices'),
        );
      }
      places.add(mount.mountPath);
    }
    checkSubPaths(mount, at, errors);
    checkPropagation(mount, container.securityContext?.privileged === true, at, errors);
  });
}

function checkSubPaths(mount: VolumeMount, path: string, errors: Errors): void {
  if (mount.subPath) checkDescendingPath(mount.subPath, `${path}.subPath`, errors);
  if (!mount.subPathExpr) return;
  if (mount.subPath) {
    errors.push(
      fieldError.invalid(`${path}.subPathExpr`, mount.subPathExpr, 'subPathExpr and subPath are mutually exclusive'),
    );
  }
  checkDescendingPath(mount.subPathExpr, `${path}.subPathExpr`, errors);
}

function checkPropagation(mount: VolumeMount, privileged: boolean, path: string, errors: Errors): void {
  checkOneOf(mount.mountPropagation, ['Bidirectional', 'HostToContainer', 'None'], `${path}.mountPropagation`, errors);
  if (mount.mountPropagation === 'Bidirectional' && !privileged) {
    errors.push(
      fieldError.forbidden(
        `${path}.mountPropagation`,
        'Bidirectional mount propagation is available only to privileged containers',
      ),
    );
  }
  const recursive = mount.recursiveReadOnly;
  checkOneOf(recursive, ['Disabled', 'Enabled', 'IfPossible'], `${path}.recursiveReadOnly`, errors);
  if (!recursive || recursive === 'Disabled') return;
  if (!mount.readOnly) {
    errors.push(fieldError.forbidden(`${path}.recursiveReadOnly`, 'may only be specified when readOnly is true'));
  }
  if (mount.mountPropagation && mount.mountPropagation !== 'None') {
    errors.push(
      fieldError.forbidden(`${path}.recursiveReadOnly`, 'may only be specified when mountPropagation is None'),
    );
  }
}

/** Validates raw block devices: only claims, unique paths, no volume that is also mounted. */
export function checkVolumeDevices(
  container: Container | EphemeralContainer,
  volumes: Volumes,
  path: string,
  errors: Errors,
): void {
  const places = new Set<string>();
  const mounted = new Set((container.volumeMounts ?? []).map((mount) => mount.name));
  container.volumeDevices?.forEach((device, i) => {
    const at = `${path}.volumeDevices[${i}]`;
    if (checkText(device.name, `${at}.name`, errors)) {
      const volume = volumes.get(device.name);
      if (!volume) errors.push(fieldError.notFound(`${at}.name`, device.name));
      else if (!volume.persistentVolumeClaim && !volume.ephemeral) {
        errors.push(
          fieldError.invalid(
            `${at}.name`,
            device.name,
            'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode',
          ),
        );
      }
      if (mounted.has(device.name)) {
        errors.push(fieldError.invalid(`${at}.name`, device.name, 'must not already exist in volumeMounts'));
      }
    }
    if (!checkText(device.devicePath, `${at}.devicePath`, errors)) return;
    checkNoBackSteps(device.devicePath, `${at}.devicePath`, errors);
    if (places.has(device.devicePath))
      errors.push(fieldError.invalid(`${at}.devicePath`, device.devicePath, 'must be unique'));
    places.add(device.devicePath);
  });
}
