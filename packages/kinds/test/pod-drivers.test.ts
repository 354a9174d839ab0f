import test from 'ava';
import { Pod } from '../src/index.ts';
import { container, podManifest } from './helpers/manifests.ts';
import { create } from './helpers/writes.ts';

const at = 'spec.volumes[0]';
const messagesOf = (spec: Record<string, unknown>) => create(Pod, podManifest(spec)).messages;
const volume = (source: object) => messagesOf({ volumes: [{ name: 'v', ...source }] });

test('sources of storage drivers have the rules of Kubernetes', (t) => {
  const subdomain = / a lowercase RFC 1123 subdomain/;
  t.regex(volume({ csi: { driver: '-bad' } })[0] ?? '', subdomain);
  t.deepEqual(volume({ csi: { driver: 'A.b', nodePublishSecretRef: {} } }), [
    `${at}.csi.nodePublishSecretRef.name: Required value`,
  ]);
  const iscsi = { targetPortal: 'p', lun: 0 };
  t.deepEqual(
    volume({ iscsi: { ...iscsi, iqn: 'iqn.2020-01.example.com:a', initiatorName: 'eui.0123456789ABCDEF' } }),
    [],
  );
  t.deepEqual(volume({ iscsi: { ...iscsi, iqn: 'iqn.bad', initiatorName: 'bad' } }), [
    `${at}.iscsi.iqn: Invalid value: "iqn.bad": must be valid format`,
    `${at}.iscsi.initiatorname: Invalid value: "bad": must be valid format starting with iqn, eui, or naa`,
  ]);
  const disk = { diskName: 'd', diskURI: 'https://a.blob.core.windows.net/c/d.vhd' };
  t.deepEqual(volume({ azureDisk: disk }), []);
  t.deepEqual(volume({ azureDisk: { ...disk, kind: 'Managed', cachingMode: 'x' } }), [
    `${at}.azureDisk.cachingMode: Unsupported value: "x": supported values: "None", "ReadOnly", "ReadWrite"`,
    `${at}.azureDisk.diskURI: Unsupported value: "${disk.diskURI}": supported values: ` +
      '"/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"',
  ]);
  t.deepEqual(volume({ flexVolume: { driver: 'a', options: { 'A.k8s.io/b': '1', c: '2' } } }), [
    `${at}.flexVolume.options[A.k8s.io/b]: Invalid value: "A.k8s.io/b": kubernetes.io and k8s.io namespaces are reserved`,
  ]);
  const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
  t.deepEqual(volume({ ephemeral: { volumeClaimTemplate: { metadata: { labels: { a: 'b' } }, spec } } }), []);
  t.deepEqual(volume({ ephemeral: { volumeClaimTemplate: { metadata: { name: 'n' }, spec } } }), [
    `${at}.ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set`,
  ]);
});

test('pods of Windows have the rules of Kubernetes', (t) => {
  const os = { name: 'windows' };
  const refused = 'Forbidden: cannot be set for a windows pod';
  const init = { ...container, name: 'i', securityContext: { privileged: true } };
  t.deepEqual(messagesOf({ os, securityContext: { supplementalGroups: [1] }, initContainers: [init] }), [
    `spec.securityContext.supplementalGroups: ${refused}`,
    `spec.initContainers[0].securityContext.privileged: ${refused}`,
  ]);
  const hostProcess = (value: boolean) => ({ securityContext: { windowsOptions: { hostProcess: value } } });
  t.deepEqual(messagesOf({ os, ...hostProcess(true) }), [
    'spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers',
  ]);
  t.deepEqual(messagesOf({ os, hostNetwork: true, ...hostProcess(true) }), []);
  const process = { ...container, ...hostProcess(true) };
  t.deepEqual(messagesOf({ os, hostNetwork: true, containers: [process, { ...container, name: 'b' }] }), [
    'spec: Invalid value: "": If pod contains any hostProcess containers then all containers must be HostProcess containers',
  ]);
  const path = 'spec.securityContext.windowsOptions.runAsUserName: Invalid value:';
  for (const [name, detail] of [
    ['', 'runAsUserName cannot be an empty string'],
    ['a\\b\\c', 'runAsUserName cannot contain more than one backslash'],
    ['a?b', `runAsUserName's User cannot contain the following characters: "/\\:;|=,+*?<>@[]`],
    ['. .', "runAsUserName's User cannot contain only periods or spaces"],
  ]) {
    t.deepEqual(messagesOf({ os, securityContext: { windowsOptions: { runAsUserName: name } } }), [
      `${path} ${JSON.stringify(name)}: ${detail}`,
    ]);
  }
  t.deepEqual(messagesOf({ os, securityContext: { windowsOptions: { runAsUserName: 'CORP\\user' } } }), []);
  t.deepEqual(messagesOf({ os: { name: 'mac' } }), [
    'spec.os: Unsupported value: "mac": supported values: "linux", "windows"',
  ]);
});
