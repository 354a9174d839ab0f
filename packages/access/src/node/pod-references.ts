import type { coreV1, PersistentVolume, Pod, Volume } from '@keelson/kinds';

type AnyContainer = coreV1.Container | coreV1.EphemeralContainer;

/** Volume sources that require nothing from the API server unless they name a Secret. */
const localSources = [
  'awsElasticBlockStore',
  'azureDisk',
  'cephfs',
  'cinder',
  'downwardAPI',
  'emptyDir',
  'fc',
  'flexVolume',
  'flocker',
  'gcePersistentDisk',
  'gitRepo',
  'hostPath',
  'image',
  'iscsi',
  'nfs',
  'photonPersistentDisk',
  'portworxVolume',
  'quobyte',
  'rbd',
  'scaleIO',
  'storageos',
  'vsphereVolume',
] as const satisfies readonly (keyof Volume)[];

function containersOf({ spec }: Pod): AnyContainer[] {
  return [...(spec.initContainers ?? []), ...spec.containers, ...(spec.ephemeralContainers ?? [])];
}

function namesSecret(volume: Volume): boolean {
  const { cephfs, cinder, flexVolume, rbd, scaleIO, iscsi, storageos, csi } = volume;
  const bySource = [cephfs, cinder, flexVolume, rbd, scaleIO, iscsi, storageos].some((source) => source?.secretRef);
  return (
    bySource ||
    csi?.nodePublishSecretRef !== undefined ||
    volume.secret !== undefined ||
    volume.azureFile !== undefined ||
    (volume.projected?.sources ?? []).some(({ secret }) => secret !== undefined)
  );
}

function namesConfigMap(volume: Volume): boolean {
  return (
    volume.configMap !== undefined || (volume.projected?.sources ?? []).some(({ configMap }) => configMap !== undefined)
  );
}

function projectedReference({ name, projected }: Volume): string | undefined {
  for (const source of projected?.sources ?? []) {
    if (source.serviceAccountToken) return 'serviceaccounts (via projected volumes)';
    if (source.clusterTrustBundle) return 'clustertrustbundles';
    if (source.podCertificate) return 'podcertificates';
    if (!source.downwardAPI) return `unknown source for projected volume ${JSON.stringify(name)}`;
  }
  return undefined;
}

function volumeReference(volume: Volume): string | undefined {
  if (volume.csi) return 'csidrivers (via CSI volumes)';
  if (volume.glusterfs) return 'endpoints (via glusterFS volumes)';
  if (volume.persistentVolumeClaim) return 'persistentvolumeclaims';
  if (volume.ephemeral) return 'persistentvolumeclaims (via ephemeral volumes)';
  if (volume.projected) return projectedReference(volume);
  const isLocal = localSources.some((source) => volume[source] !== undefined);
  // A volume source that is not listed may be a newer one, which may refer to API objects.
  return isLocal ? undefined : `unknown volume type for volume ${JSON.stringify(volume.name)}`;
}

/** Begins the reference to a claim. */
export const claimPrefix = 'persistentvolumeclaims/';

/**
 * The Secrets, ConfigMaps, service accounts and claims to which a pod refers, as `secrets/NAME`, `configmaps/NAME`,
 * `serviceaccounts/NAME` and `persistentvolumeclaims/NAME`; all are in the namespace of the pod.
 */
export function referencesOf(pod: Pod): ReadonlySet<string> {
  const { spec } = pod;
  const found = new Set<string>();
  const secret = (name: string | undefined) => name && found.add(`secrets/${name}`);
  const configMap = (name: string | undefined) => name && found.add(`configmaps/${name}`);
  if (spec.serviceAccountName) found.add(`serviceaccounts/${spec.serviceAccountName}`);
  for (const { name } of spec.imagePullSecrets ?? []) secret(name);
  for (const { env = [], envFrom = [] } of containersOf(pod)) {
    for (const { valueFrom } of env) {
      secret(valueFrom?.secretKeyRef?.name);
      configMap(valueFrom?.configMapKeyRef?.name);
    }
    for (const { secretRef, configMapRef } of envFrom) {
      secret(secretRef?.name);
      configMap(configMapRef?.name);
    }
  }
  for (const volume of spec.volumes ?? []) {
    const { cephfs, cinder, flexVolume, rbd, scaleIO, iscsi, storageos, csi } = volume;
    for (const source of [cephfs, cinder, flexVolume, rbd, scaleIO, iscsi, storageos]) secret(source?.secretRef?.name);
    secret(csi?.nodePublishSecretRef?.name);
    secret(volume.secret?.secretName);
    secret(volume.azureFile?.secretName);
    if (volume.persistentVolumeClaim) found.add(`${claimPrefix}${volume.persistentVolumeClaim.claimName}`);
    if (volume.ephemeral) found.add(`${claimPrefix}${pod.metadata?.name}-${volume.name}`);
    configMap(volume.configMap?.name);
    for (const source of volume.projected?.sources ?? []) {
      secret(source.secret?.name);
      configMap(source.configMap?.name);
    }
  }
  return found;
}

/** The Secrets that a node needs to mount a volume, as `NAMESPACE/NAME`. */
export function secretsOfVolume({ spec }: PersistentVolume): ReadonlySet<string> {
  const { azureFile, cephfs, cinder, csi, flexVolume, iscsi, rbd, scaleIO, storageos, claimRef } = spec;
  const found = new Set<string>();
  const add = (name: string | undefined, namespace: string | undefined) => {
    if (name) found.add(`${namespace || claimRef?.namespace}/${name}`);
  };
  for (const source of [cephfs, cinder, flexVolume, iscsi, rbd, scaleIO, storageos])
    add(source?.secretRef?.name, source?.secretRef?.namespace);
  for (const secret of [csi?.nodePublishSecretRef, csi?.nodeStageSecretRef, csi?.nodeExpandSecretRef])
    add(secret?.name, secret?.namespace);
  add(azureFile?.secretName, azureFile?.secretNamespace);
  return found;
}

/**
 * The resource of the first API object that a pod refers to, as NodeRestriction of kube-apiserver names it; undefined
 * when it refers to none. A mirror pod must not refer to any: a node that could create such pods would get access to
 * every object.
 */
export function apiReferenceOf(pod: Pod): string | undefined {
  const { spec } = pod;
  const containers = containersOf(pod);
  const volumes = spec.volumes ?? [];
  const inEnv = (test: (source: coreV1.EnvVarSource | coreV1.EnvFromSource) => unknown) =>
    containers.some(({ env = [], envFrom = [] }) =>
      [...env.map(({ valueFrom }) => valueFrom ?? {}), ...envFrom].some((source) => test(source)),
    );
  if (spec.serviceAccountName) return 'serviceaccounts';
  const secretInEnv = inEnv(
    (source) => ('secretKeyRef' in source && source.secretKeyRef) || ('secretRef' in source && source.secretRef),
  );
  if (spec.imagePullSecrets?.length || secretInEnv || volumes.some(namesSecret)) return 'secrets';
  const mapInEnv = inEnv(
    (source) =>
      ('configMapKeyRef' in source && source.configMapKeyRef) || ('configMapRef' in source && source.configMapRef),
  );
  if (mapInEnv || volumes.some(namesConfigMap)) return 'configmaps';
  if (spec.resourceClaims?.length) return 'resourceclaims';
  for (const volume of volumes) {
    const reference = volumeReference(volume);
    if (reference !== undefined) return reference;
  }
  return undefined;
}
