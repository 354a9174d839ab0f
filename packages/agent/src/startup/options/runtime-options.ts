import { agentName } from '../../base/agent-name.ts';
import { option } from './option.ts';
import { bool, duration, int32, text } from './scalar-types.ts';

export const defaultEngineEndpoint = 'unix:///var/run/docker.sock';
export const defaultRuntimeEndpoint = `unix:///var/run/${agentName}/runtime.sock`;

export const runtimeOptions = [
  option(
    'container-runtime',
    text,
    'runtime-a',
    'What runs containers: runtime-a, an engine behind a socket, or runtime-b, an OCI binary.',
  ),
  option(
    'container-runtime-endpoint',
    text,
    defaultRuntimeEndpoint,
    '[Experimental] Unix socket of a remote runtime (CRI), with runtime-a; not given, the runtime of this machine is served there.',
  ),
  option('image-service-endpoint', text, '', '[Experimental] Unix socket of a remote image service.', {
    shownDefault: 'that of --container-runtime-endpoint',
  }),
  option('runtime-a-endpoint', text, defaultEngineEndpoint, 'Unix socket of the engine of runtime-a.'),
  option(
    'runtime-a-disable-shared-pid',
    bool,
    true,
    'Gives each container a PID namespace of its own; false shares one per pod. Will be removed in a future release.',
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
    'Deadline of requests to the runtime, other than pull, logs, exec and attach.',
  ),
  option('image-pull-progress-deadline', duration, 60_000, 'A pull without progress for this long is cancelled.'),
  option('serialize-image-pulls', bool, true, 'Pulls one image at a time.'),
  option(
    'image-gc-high-threshold',
    int32,
    85,
    'Disk usage in percent from which on unused images are deleted; at 100 they never are.',
  ),
  option('image-gc-low-threshold', int32, 80, 'Disk usage in percent down to which unused images are deleted.'),
  option('minimum-image-ttl-duration', duration, 120_000, 'Least age of an unused image that may be deleted.'),
  option(
    'pod-infra-container-image',
    text,
    'registry.k8s.io/pause:3.10',
    'Image of the container whose namespaces all containers of a pod share, where the runtime uses one; it is never collected.',
  ),
  option('registry-qps', int32, 5, 'Image pulls per second in the long run; 0 is no limit.'),
  option(
    'registry-burst',
    int32,
    10,
    'Pulls that may be made at once after a pause; means nothing when --registry-qps is 0.',
  ),
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
    'Experimental: the agent itself runs in a container; files of volumes and mounts are reached by nsenter.',
  ),
  option('experimental-mounter-path', text, '', '[Experimental] Binary that mounts file systems.', {
    shownDefault: 'the default mount',
  }),
  option(
    'experimental-check-node-capabilities-before-mount',
    bool,
    false,
    '[Experimental] Looks for what a mount needs before trying it; means nothing with --experimental-mounter-path.',
  ),
  option(
    'volume-plugin-dir',
    text,
    `/usr/libexec/kubernetes/${agentName}-plugins/volume/exec/`,
    'Directory of volume plugins of third parties: executables VENDOR~DRIVER/DRIVER.',
  ),
  option('volume-stats-agg-period', duration, 60_000, 'How often the disk usage of volumes is measured; 0 is never.'),
  option('enable-controller-attach-detach', bool, true, 'Leaves attaching and detaching volumes to the controller.'),
] as const;
