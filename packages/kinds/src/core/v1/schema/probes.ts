import { always, type Infer, inline, optional, type Schema, s } from '@keelson/core';

const execAction = s.message('k8s.io.api.core.v1.ExecAction', 'A command in the container; exit code 0 is success.', {
  command: optional(
    1,
    s.list(s.string(), { listType: 'atomic' }),
    'Program and arguments, without a shell; the working directory is `/`.',
  ),
});
export interface ExecAction extends Infer<typeof execAction> {}
export const ExecActionSchema: Schema<ExecAction> = execAction;

const httpHeader = s.message('k8s.io.api.core.v1.HTTPHeader', 'One header of a request.', {
  name: always(1, s.string(), 'Name of the header.'),
  value: always(2, s.string(), 'Value of the header.'),
});
export interface HTTPHeader extends Infer<typeof httpHeader> {}
export const HTTPHeaderSchema: Schema<HTTPHeader> = httpHeader;

const httpGetAction = s.message(
  'k8s.io.api.core.v1.HTTPGetAction',
  'A GET request; a code from 200 to 399 is success.',
  {
    path: optional(1, s.string(), 'Path of the request.', { default: '/' }),
    port: always(2, s.intOrString(), 'Number (1 to 65535) or name of a container port.'),
    host: optional(3, s.string(), "Host to connect to; the pod's address by default."),
    scheme: optional(4, s.string({ values: ['HTTP', 'HTTPS'] }), 'HTTP or HTTPS; certificates are not checked.', {
      default: 'HTTP',
    }),
    httpHeaders: optional(5, s.list(HTTPHeaderSchema, { listType: 'atomic' }), 'Headers to send; may repeat.'),
  },
);
export interface HTTPGetAction extends Infer<typeof httpGetAction> {}
export const HTTPGetActionSchema: Schema<HTTPGetAction> = httpGetAction;

const tcpSocketAction = s.message(
  'k8s.io.api.core.v1.TCPSocketAction',
  'A TCP connection; it succeeds when the connection is accepted.',
  {
    port: always(1, s.intOrString(), 'Number (1 to 65535) or name of a container port.'),
    host: optional(2, s.string(), "Host to connect to; the pod's address by default."),
  },
);
export interface TCPSocketAction extends Infer<typeof tcpSocketAction> {}
export const TCPSocketActionSchema: Schema<TCPSocketAction> = tcpSocketAction;

const grpcAction = s.message('k8s.io.api.core.v1.GRPCAction', 'A call of the gRPC health service.', {
  port: always(1, s.int32(), 'Port number, 1 to 65535.'),
  service: optional(2, s.string(), 'Service name in the health request.', { presence: true, default: '' }),
});
export interface GRPCAction extends Infer<typeof grpcAction> {}
export const GRPCActionSchema: Schema<GRPCAction> = grpcAction;

const sleepAction = s.message('k8s.io.api.core.v1.SleepAction', 'A pause of fixed length.', {
  seconds: always(1, s.int64(), 'Length in seconds.'),
});
export interface SleepAction extends Infer<typeof sleepAction> {}
export const SleepActionSchema: Schema<SleepAction> = sleepAction;

const probeHandler = s.message('k8s.io.api.core.v1.ProbeHandler', 'Action of a probe; exactly one field is set.', {
  exec: optional(1, ExecActionSchema, 'Runs a command.'),
  httpGet: optional(2, HTTPGetActionSchema, 'Sends an HTTP request.'),
  tcpSocket: optional(3, TCPSocketActionSchema, 'Opens a TCP connection.'),
  grpc: optional(4, GRPCActionSchema, 'Calls the gRPC health service.'),
});
export interface ProbeHandler extends Infer<typeof probeHandler> {}
export const ProbeHandlerSchema: Schema<ProbeHandler> = probeHandler;

const probe = s.message('k8s.io.api.core.v1.Probe', 'A repeated check of a container.', {
  handler: inline(1, ProbeHandlerSchema),
  initialDelaySeconds: optional(2, s.int32(), 'Seconds from the start of the container to the first check.'),
  timeoutSeconds: optional(3, s.int32(), 'Seconds after which a check has failed.', { default: 1 }),
  periodSeconds: optional(4, s.int32(), 'Seconds between checks.', { default: 10 }),
  successThreshold: optional(
    5,
    s.int32(),
    'Successes in a row that count after a failure; 1 for liveness and startup.',
    {
      default: 1,
    },
  ),
  failureThreshold: optional(6, s.int32(), 'Failures in a row that count after a success.', { default: 3 }),
  terminationGracePeriodSeconds: optional(
    7,
    s.int64(),
    'Seconds given to the container when this probe ends it; by default those of the pod.',
    { presence: true },
  ),
});
export interface Probe extends Infer<typeof probe> {}
export const ProbeSchema: Schema<Probe> = probe;

const lifecycleHandler = s.message(
  'k8s.io.api.core.v1.LifecycleHandler',
  "What is done at a point of a container's life; exactly one field is set.",
  {
    exec: optional(1, ExecActionSchema, 'Runs a command.'),
    httpGet: optional(2, HTTPGetActionSchema, 'Sends an HTTP request.'),
    tcpSocket: optional(3, TCPSocketActionSchema, 'Not supported any more; kept for old objects.'),
    sleep: optional(4, SleepActionSchema, 'Waits.'),
  },
);
export interface LifecycleHandler extends Infer<typeof lifecycleHandler> {}
export const LifecycleHandlerSchema: Schema<LifecycleHandler> = lifecycleHandler;

/** Signals that end a container. */
export const StopSignalSchema: Schema<string> = s.string({
  values: [
    'SIGABRT',
    'SIGALRM',
    'SIGBUS',
    'SIGCHLD',
    'SIGCLD',
    'SIGCONT',
    'SIGFPE',
    'SIGHUP',
    'SIGILL',
    'SIGINT',
    'SIGIO',
    'SIGIOT',
    'SIGKILL',
    'SIGPIPE',
    'SIGPOLL',
    'SIGPROF',
    'SIGPWR',
    'SIGQUIT',
    'SIGRTMAX',
    'SIGRTMAX-1',
    'SIGRTMAX-10',
    'SIGRTMAX-11',
    'SIGRTMAX-12',
    'SIGRTMAX-13',
    'SIGRTMAX-14',
    'SIGRTMAX-2',
    'SIGRTMAX-3',
    'SIGRTMAX-4',
    'SIGRTMAX-5',
    'SIGRTMAX-6',
    'SIGRTMAX-7',
    'SIGRTMAX-8',
    'SIGRTMAX-9',
    'SIGRTMIN',
    'SIGRTMIN+1',
    'SIGRTMIN+10',
    'SIGRTMIN+11',
    'SIGRTMIN+12',
    'SIGRTMIN+13',
    'SIGRTMIN+14',
    'SIGRTMIN+15',
    'SIGRTMIN+2',
    'SIGRTMIN+3',
    'SIGRTMIN+4',
    'SIGRTMIN+5',
    'SIGRTMIN+6',
    'SIGRTMIN+7',
    'SIGRTMIN+8',
    'SIGRTMIN+9',
    'SIGSEGV',
    'SIGSTKFLT',
    'SIGSTOP',
    'SIGSYS',
    'SIGTERM',
    'SIGTRAP',
    'SIGTSTP',
    'SIGTTIN',
    'SIGTTOU',
    'SIGURG',
    'SIGUSR1',
    'SIGUSR2',
    'SIGVTALRM',
    'SIGWINCH',
    'SIGXCPU',
    'SIGXFSZ',
  ],
});

const lifecycle = s.message('k8s.io.api.core.v1.Lifecycle', 'What is done around the life of a container.', {
  postStart: optional(1, LifecycleHandlerSchema, 'Runs right after the start; failure ends the container.'),
  preStop: optional(2, LifecycleHandlerSchema, 'Runs before the container is ended, within its grace period.'),
  stopSignal: optional(3, StopSignalSchema, 'Signal that ends the container; by default that of the image.', {
    presence: true,
  }),
});
export interface Lifecycle extends Infer<typeof lifecycle> {}
export const LifecycleSchema: Schema<Lifecycle> = lifecycle;
