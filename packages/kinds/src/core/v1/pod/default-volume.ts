import type { Volume } from '../schema/index.ts';
import { sourcesOf } from './volume-sources.ts';

/** Octal 0644. */
const defaultMode = 420;

/** Defaults of one volume: a volume without source is an empty directory. */
export function defaultVolume(volume: Volume): void {
  if (sourcesOf(volume).length === 0) volume.emptyDir = {};
  if (volume.hostPath) volume.hostPath.type ??= '';
  if (volume.secret) volume.secret.defaultMode ??= defaultMode;
  if (volume.configMap) volume.configMap.defaultMode ??= defaultMode;
  defaultDownwardApi(volume);
  defaultProjected(volume);
  defaultDrivers(volume);
}

function defaultDownwardApi(volume: Volume): void {
  if (!volume.downwardAPI) return;
  volume.downwardAPI.defaultMode ??= defaultMode;
  for (const item of volume.downwardAPI.items ?? []) if (item.fieldRef) item.fieldRef.apiVersion ||= 'v1';
}

function defaultProjected(volume: Volume): void {
  if (!volume.projected) return;
  volume.projected.defaultMode ??= defaultMode;
  for (const source of volume.projected.sources ?? []) {
    for (const item of source.downwardAPI?.items ?? []) if (item.fieldRef) item.fieldRef.apiVersion ||= 'v1';
    if (source.serviceAccountToken) source.serviceAccountToken.expirationSeconds ??= 3600;
  }
}

/** Sets the defaults of sources that are specific to a storage driver. */
function defaultDrivers(volume: Volume): void {
  const { iscsi, rbd, azureDisk, scaleIO, ephemeral } = volume;
  if (iscsi) iscsi.iscsiInterface ||= 'default';
  if (rbd) {
    rbd.pool ||= 'rbd';
    rbd.user ||= 'admin';
    rbd.keyring ||= '/etc/ceph/keyring';
  }
  if (azureDisk) {
    azureDisk.cachingMode ||= 'ReadWrite';
    azureDisk.kind ||= 'Shared';
    azureDisk.fsType ??= 'ext4';
    azureDisk.readOnly ??= false;
  }
  if (scaleIO) {
    scaleIO.storageMode ||= 'ThinProvisioned';
    scaleIO.fsType ||= 'xfs';
  }
  if (ephemeral?.volumeClaimTemplate) ephemeral.volumeClaimTemplate.spec.volumeMode ??= 'Filesystem';
}
