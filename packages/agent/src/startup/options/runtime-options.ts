import { bool, duration, text } from '@keelson/core/internal';
import { agentName } from '../../base/agent-name.ts';
import { option } from './option.ts';
import { int32 } from './value-types.ts';

export const defaultEngineEndpoint = 'unix:///var/run/docker.sock';
export const defaultRuntimeEndpoint = `unix:///var/run/${agentName}/runtime.sock`;

export const runtimeOptions = [
  option(
    'container-runtime',
    text,
    'runtime-a',
    'Container runtime: runtime-a, an engine with a socket, or runtime-b, an OCI binary.',
  ),
  option(
    'container-runtime-endpoint',
    text,
    defaultRuntimeEndpoint,
    '[Experimental] Socket of a remote CRI runtime, with runtime-a; when absent, the local runtime is served there.',
  ),
  option('image-service-endpoint', text, '', '[Experimental] Unix socket of a remote image service.', {
    shownDefault: 'that of --container-runtime-endpoint',
  }),
  option('runtime-a-endpoint', text, defaultEngineEndpoint, 'Unix socket of the engine of runtime-a.'),
  option(
    'runtime-a-disable-shared-pid',
    bool,
    true,
    'Creates one PID namespace per container; false shares one per pod. Will be removed in a future release.',
  ),
  option(
    'runtime-b-api-endpoint',
    text,
    'localhost:15441',
    "Host and port of runtime-b's supervisor; used with runtime-b only.",
  ),
  option('runtime-b-path', text, '', 'Binary of runtime-b; used with runtime-b only.', {
    shownDefault: 'the first in PATH',
  }),
  option(
    'runtime-request-timeout',
    duration,
    120_000,
    'Timeout of requests to the runtime, except pull, logs, exec and attach.',
  ),
  option('image-pull-progress-deadline', duration, 60_000, 'A pull without progress for this long is cancelled.'),
  option('serialize-image-pulls', bool, true, 'Pulls one image at a time.'),
  option(
    'image-gc-high-threshold',
    int32,
    85,
    'Disk usage in percent at or above which unused images are deleted; 100 disables the deletion.',
  ),
  option('image-gc-low-threshold', int32, 80, 'Disk usage in percent at which the deletion of unused images stops.'),
  option('minimum-image-ttl-duration', duration, 120_000, 'Minimum age of an unused image before it is deleted.'),
  option(
    'pod-infra-container-image',
    text,
    'registry.k8s.io/pause:3.10',
    'Image of the sandbox container of a pod, for runtimes that use one; it is never garbage collected.',
  ),
  option('registry-qps', int32, 5, 'Average limit of image pulls per second; 0 disables the limit.'),
  option('registry-burst', int32, 10, 'Maximum burst of image pulls; has no effect when --registry-qps is 0.'),
  option('cloud-a-container-registry-config', text, '', 'Configuration of the registry of cloud a.', {
    shownDefault: 'none',
  }),
  option('cloud-b-json-key', text, '', 'Key of a service account for the registry of cloud b, as JSON.', {
    shownDefault: 'none',
  }),
  option(
    'containerized',
    bool,
    false,
    'Experimental: the agent itself runs in a container; it accesses volumes and mounts of the host with nsenter.',
  ),
  option('experimental-mounter-path', text, '', '[Experimental] Binary that mounts file systems.', {
    shownDefault: 'the default mount',
  }),
  option(
    'experimental-check-node-capabilities-before-mount',
    bool,
    false,
    '[Experimental] Checks the requirements before a mount; has no effect with --experimental-mounter-path.',
  ),
  option(
    'volume-plugin-dir',
    text,
    `/usr/libexec/kubernetes/${agentName}-plugins/volume/exec/`,
    'Directory of volume plugins of third parties: executables VENDOR~DRIVER/DRIVER.',
  ),
  option(
    'volume-stats-agg-period',
    duration,
    60_000,
    'How often the disk usage of volumes is measured; 0 disables it.',
  ),
  option('enable-controller-attach-detach', bool, true, 'Leaves attaching and detaching volumes to the controller.'),
] as const;
