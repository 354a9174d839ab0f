// Builds images for the conformance tests of Kubernetes, as OCI layouts in a folder: agnhost, pause and nonewprivs from
// their sources in the module of Kubernetes, the others from programs of this machine. They have the names and the
// commands of the published images, which no package registry provides.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

const support = new URL('../packages/test-support/dist/src/index.js', import.meta.url);
const { findProgram, installPrograms, ociLayout, placeProgram, tarOf } = await import(support);

const run = (command, args, options) => execFileSync(command, args, { encoding: 'utf8', ...options });
const users = ['root:x:0:0::/root:/bin/sh', 'user-defined-in-image:x:1000:1000::/home/user-defined-in-image:/bin/sh'];
const groups = ['root:x:0:', 'user-defined-in-image:x:1000:', 'group-defined-in-image:x:50000:user-defined-in-image'];

/** A root file system with busybox and the users of agnhost. */
function busyboxRoot(root) {
  for (const name of [
    'bin',
    'sbin',
    'etc',
    'root',
    'tmp',
    'usr/bin',
    'usr/local/bin',
    'var',
    'home/user-defined-in-image',
  ])
    mkdirSync(join(root, name), { recursive: true });
  chmodSync(join(root, 'tmp'), 0o1777);
  copyFileSync(findProgram('busybox'), join(root, 'bin/busybox'));
  for (const applet of run(findProgram('busybox'), ['--list']).trim().split('\n'))
    if (applet !== 'busybox') symlinkSync('/bin/busybox', join(root, 'bin', applet));
  // The shell of busybox drops variables whose names are not identifiers.
  addPrograms(root, ['bash']);
  rmSync(join(root, 'bin/sh'));
  symlinkSync('bash', join(root, 'bin/sh'));
  writeFileSync(join(root, 'etc/passwd'), `${users.join('\n')}\n`);
  writeFileSync(join(root, 'etc/group'), `${groups.join('\n')}\n`);
  writeFileSync(join(root, 'etc/nsswitch.conf'), 'passwd: files\ngroup: files\nhosts: files dns\n');
}

/** Replaces applets of busybox by programs of this machine with more options. */
function addPrograms(root, names) {
  for (const name of names) {
    rmSync(join(root, 'bin', name), { force: true });
    placeProgram(root, findProgram(name), `/bin/${name}`);
  }
  // Programs load the libraries that resolve host names while they run. Those of `getent` are copied with it.
  placeProgram(root, findProgram('getent'), '/bin/getent');
}

/** An image with a web server for tests that need any. It serves one page from the directory of the original image. */
function webServer(directory) {
  return {
    fill: (root) => {
      busyboxRoot(root);
      mkdirSync(join(root, directory), { recursive: true });
      writeFileSync(join(root, directory, 'index.html'), '<html><body><h1>It works!</h1></body></html>\n');
    },
    config: { Cmd: ['/bin/httpd', '-f', '-p', '80', '-h', `/${directory}`] },
  };
}

function agnhostWith(files, programs) {
  return {
    fill: (root) => {
      busyboxRoot(root);
      addPrograms(root, ['curl', 'dig', 'ss']);
      copyFileSync(programs.agnhost, join(root, 'agnhost'));
      symlinkSync('agnhost', join(root, 'agnhost-2'));
      mkdirSync(join(root, 'uploads'));
      for (const file of files) copyFileSync(file, join(root, basename(file)));
    },
    config: { Entrypoint: ['/agnhost'], Cmd: ['pause'] },
  };
}

/** Compiles the programs of images. `project` has a go.mod that requires Kubernetes; `source` is the module of it. */
function compilePrograms(folder, project, source) {
  const go = (name, main) => {
    const env = { ...process.env, CGO_ENABLED: '0' };
    run('go', ['build', '-ldflags', '-s -w', '-o', join(folder, name), main], { cwd: project, env });
    return join(folder, name);
  };
  run('cc', [
    '-Os',
    '-static',
    '-DVERSION=local',
    '-o',
    join(folder, 'pause'),
    join(source, 'build/pause/linux/pause.c'),
  ]);
  return {
    agnhost: go('agnhost', 'k8s.io/kubernetes/test/images/agnhost'),
    nonewprivs: go('nnp', 'k8s.io/kubernetes/test/images/nonewprivs'),
    pause: join(folder, 'pause'),
  };
}

/**
 * Writes the images to a folder, unless they are there.
 * @returns the names of the images
 */
export function writeKubernetesImages(folder, project, source) {
  const done = join(folder, 'names');
  if (!existsSync(done)) build(folder, project, source, done);
  return readFileSync(done, 'utf8').trim().split('\n');
}

function build(folder, project, source, done) {
  const missing = installPrograms(
    ['busybox', 'dig', 'curl', 'ss', 'bash'],
    ['busybox-static', 'bind9-dnsutils', 'curl', 'iproute2', 'bash'],
  );
  if (missing.length > 0) throw new Error(`images need these programs: ${missing.join(', ')}`);
  process.stderr.write('building images for the tests of Kubernetes\n');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const scratch = mkdtempSync(join(tmpdir(), 'keelson-images-'));
  try {
    const programs = compilePrograms(scratch, project, source);
    const pages = (name) => ['data.json', `${name}.jpg`].map((file) => join(source, 'test/images', name, 'html', file));
    const website = (name) => {
      const { fill } = agnhostWith(pages(name), programs);
      return { fill, config: { Entrypoint: ['/agnhost'], Cmd: ['test-webserver'] } };
    };
    const keys = ['localhost.crt', 'localhost.key'].map((name) => join(source, 'test/images/agnhost/porter', name));
    const busybox = { fill: busyboxRoot, config: { Cmd: ['sh'] } };
    const test = 'registry.k8s.io/e2e-test-images';
    const images = {
      'registry.k8s.io/pause:3.10.1': {
        fill: (root) => copyFileSync(programs.pause, join(root, 'pause')),
        config: { Entrypoint: ['/pause'], User: '65535:65535' },
      },
      [`${test}/agnhost:2.56`]: agnhostWith(keys, programs),
      [`${test}/busybox:1.37.0-1`]: busybox,
      [`${test}/nautilus:1.7`]: website('nautilus'),
      [`${test}/kitten:1.7`]: website('kitten'),
      [`${test}/nonroot:1.4`]: { ...busybox, config: { Cmd: ['sh'], User: '1234' } },
      [`${test}/nonewprivs:1.3`]: {
        fill: (root) => {
          busyboxRoot(root);
          copyFileSync(programs.nonewprivs, join(root, 'usr/local/bin/nnp'));
          chmodSync(join(root, 'usr/local/bin/nnp'), 0o6755);
        },
        config: { Cmd: ['nnp'] },
      },
      [`${test}/jessie-dnsutils:1.7`]: {
        fill: (root) => {
          busyboxRoot(root);
          addPrograms(root, ['dig']);
        },
        config: { Cmd: ['bash'] },
      },
      [`${test}/httpd:2.4.38-4`]: webServer('usr/local/apache2/htdocs'),
      [`${test}/httpd:2.4.39-4`]: webServer('usr/local/apache2/htdocs'),
      [`${test}/nginx:1.14-4`]: webServer('usr/share/nginx/html'),
      [`${test}/nginx:1.15-4`]: webServer('usr/share/nginx/html'),
    };
    for (const [name, { fill, config }] of Object.entries(images)) {
      const short = basename(name).replace(':', '-');
      const root = join(scratch, short);
      mkdirSync(root);
      fill(root);
      tarOf(root, `${root}.tar`);
      ociLayout(join(folder, short), name, [`${root}.tar`], {
        Env: ['PATH=/usr/local/bin:/usr/bin:/sbin:/bin'],
        ...config,
      });
    }
    writeFileSync(`${done}.new`, `${Object.keys(images).join('\n')}\n`);
    renameSync(`${done}.new`, done);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
