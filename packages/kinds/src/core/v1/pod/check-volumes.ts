import { fieldError } from '@keelson/core';
import {
  checkOneOf,
  checkRange,
  checkRequiredName,
  checkText,
  checkUnique,
  type Errors,
} from '../../../validation/checks.ts';
import { checkDescendingPath, checkNoBackSteps } from '../../../validation/paths.ts';
import { isNegativeAmount } from '../../../validation/quantities.ts';
import type { Container, EphemeralContainer, Volume, VolumeMount } from '../schema/index.ts';
import { checkAzureDisk, checkCsi, checkEphemeralVolume, checkFlexVolume, checkIscsi } from './check-drivers.ts';
import type { SpecOf } from './check-pod-spec.ts';
import { checkProjected } from './check-projected.ts';
import { checkDownwardFiles, checkKeyFiles, checkMode } from './check-volume-files.ts';
import { sourcesOf, type VolumeSourceName } from './volume-sources.ts';

/** Required fields of volume sources: texts and non-empty lists. */
const requiredMembers: Partial<Record<VolumeSourceName, readonly string[]>> = {
  awsElasticBlockStore: ['volumeID'],
  azureDisk: ['diskName', 'diskURI'],
  azureFile: ['secretName', 'shareName'],
  cephfs: ['monitors'],
  cinder: ['volumeID'],
  flexVolume: ['driver'],
  gcePersistentDisk: ['pdName'],
  gitRepo: ['repository'],
  glusterfs: ['endpoints', 'path'],
  hostPath: ['path'],
  iscsi: ['targetPortal', 'iqn'],
  nfs: ['server', 'path'],
  persistentVolumeClaim: ['claimName'],
  photonPersistentDisk: ['pdID'],
  portworxVolume: ['volumeID'],
  quobyte: ['registry', 'volume'],
  rbd: ['monitors', 'image'],
  scaleIO: ['gateway', 'system', 'volumeName'],
  storageos: ['volumeName'],
  vsphereVolume: ['volumePath'],
};

const hostPathTypes = [
  '',
  'BlockDevice',
  'CharDevice',
  'Directory',
  'DirectoryOrCreate',
  'File',
  'FileOrCreate',
  'Socket',
];

/** Validates the source of a volume. */
export function checkVolumeSource(volume: Volume, source: VolumeSourceName, path: string, errors: Errors): void {
  const members = volume[source] as Record<string, unknown> | undefined;
  for (const member of requiredMembers[source] ?? []) {
    const value = members?.[member];
    if (!value || (Array.isArray(value) && value.length === 0)) errors.push(fieldError.required(`${path}.${member}`));
  }
  const {
    emptyDir,
    hostPath,
    gitRepo,
    nfs,
    iscsi,
    azureDisk,
    flexVolume,
    csi,
    fc,
    flocker,
    secret,
    configMap,
    downwardAPI,
    projected,
    ephemeral,
    image,
  } = volume;
  if (emptyDir?.sizeLimit !== undefined && isNegativeAmount(emptyDir.sizeLimit)) {
    errors.push(fieldError.forbidden(`${path}.sizeLimit`, 'SizeLimit field must be a valid resource quantity'));
  }
  if (hostPath) checkHostPath(hostPath, path, errors);
  if (gitRepo?.directory) checkDescendingPath(gitRepo.directory, `${path}.directory`, errors);
  if (nfs?.path && !nfs.path.startsWith('/'))
    errors.push(fieldError.invalid(`${path}.path`, nfs.path, 'must be an absolute path'));
  if (iscsi) checkIscsi(iscsi, path, errors);
  if (azureDisk) checkAzureDisk(azureDisk, path, errors);
  if (flexVolume) checkFlexVolume(flexVolume, path, errors);
  if (csi) checkCsi(csi, path, errors);
  if (fc) checkFibreChannel(fc, path, errors);
  if (flocker?.datasetName && flocker.datasetUUID) {
    errors.push(
      fieldError.invalid(path, 'resource', 'datasetName and datasetUUID can not be specified simultaneously'),
    );
  } else if (flocker && !flocker.datasetName && !flocker.datasetUUID) {
    errors.push(fieldError.required(path, 'one of datasetName and datasetUUID is required'));
  }
  checkPartition(volume, path, errors);
  if (secret) {
    checkText(secret.secretName, `${path}.secretName`, errors);
    checkMode(secret.defaultMode, `${path}.defaultMode`, errors);
    checkKeyFiles(secret.items, `${path}.items`, errors);
  }
  if (configMap) {
    checkText(configMap.name, `${path}.name`, errors);
    checkMode(configMap.defaultMode, `${path}.defaultMode`, errors);
    checkKeyFiles(configMap.items, `${path}.items`, errors);
  }
  if (downwardAPI) {
    checkMode(downwardAPI.defaultMode, `${path}.defaultMode`, errors);
    checkDownwardFiles(downwardAPI.items, `${path}.items`, errors);
  }
  if (projected) checkProjected(projected, path, errors);
  if (ephemeral) checkEphemeralVolume(ephemeral, path, errors);
  checkOneOf(image?.pullPolicy, ['Always', 'IfNotPresent', 'Never'], `${path}.pullPolicy`, errors);
}

function checkHostPath(source: NonNullable<Volume['hostPath']>, path: string, errors: Errors): void {
  if (source.path) checkNoBackSteps(source.path, `${path}.path`, errors);
  checkOneOf(source.type, hostPathTypes, `${path}.type`, errors);
}

function checkFibreChannel(source: NonNullable<Volume['fc']>, path: string, errors: Errors): void {
  const targets = source.targetWWNs?.length ?? 0;
  const ids = source.wwids?.length ?? 0;
  if (targets === 0 && ids === 0) {
    errors.push(fieldError.required(`${path}.targetWWNs`, 'must specify either targetWWNs or wwids, but not both'));
  } else if (targets > 0 && ids > 0) {
    errors.push(
      fieldError.invalid(
        `${path}.targetWWNs`,
        source.targetWWNs,
        'must specify either targetWWNs or wwids, but not both',
      ),
    );
  }
  if (targets > 0 && source.lun === undefined) {
    errors.push(fieldError.required(`${path}.lun`, 'lun is required if targetWWNs is specified'));
  }
  checkRange(source.lun, 0, 255, `${path}.lun`, errors);
}

function checkPartition(volume: Volume, path: string, errors: Errors): void {
  const partition = volume.gcePersistentDisk?.partition ?? volume.awsElasticBlockStore?.partition;
  checkRange(partition, 0, 255, `${path}.partition`, errors);
}

/** Validates the volumes of a pod: unique names, and exactly one source each. */
export function checkVolumes(volumes: readonly Volume[] | undefined, of: SpecOf, path: string, errors: Errors): void {
  const names = new Set<string>();
  volumes?.forEach((volume, i) => {
    const at = `${path}[${i}]`;
    if (checkRequiredName(volume.name, 'dns1123Label', `${at}.name`, errors)) {
      checkUnique(volume.name, names, `${at}.name`, errors);
    }
    const [first, ...others] = sourcesOf(volume);
    if (first === undefined) errors.push(fieldError.required(at, 'must specify a volume type'));
    else checkVolumeSource(volume, first, `${at}.${first}`, errors);
    if (of === 'pod' && first === 'image') checkText(volume.image?.reference, `${at}.image.reference`, errors);
    for (const other of others) {
      errors.push(fieldError.forbidden(`${at}.${other}`, 'may not specify more than 1 volume type'));
    }
  });
}

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
  const deviceNames = new Set((container.volumeDevices ?? []).map((device) => device.name));
  container.volumeMounts?.forEach((mount, i) => {
    const at = `${path}.volumeMounts[${i}]`;
    if (checkText(mount.name, `${at}.name`, errors) && !volumes.has(mount.name)) {
      errors.push(fieldError.notFound(`${at}.name`, mount.name));
    }
    if (mount.name && deviceNames.has(mount.name)) {
      errors.push(fieldError.invalid(`${at}.name`, mount.name, 'must not already exist in volumeDevices'));
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
