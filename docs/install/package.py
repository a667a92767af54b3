# Spack recipe of gammachi, for a repository of your own:
#   spack repo create my && spack repo add ./my && mkdir -p my/packages/gammachi
#   cp package.py my/packages/gammachi/ && spack install gammachi
# No MPI is a dependency: one library serves them all.

from spack.package import *


class Gammachi(Package):
    """Measures MPI programs by interposition and explains their parallel performance."""

    homepage = "https://crates.io/crates/gammachi"
    # The sources of a release, unpacked; `spack dev-build` takes them from the working directory.
    url = "file:///srv/mirror/gammachi-0.1.0.tar.gz"

    license("MIT OR Apache-2.0")

    version("0.1.0")

    depends_on("rust@1.89:", type="build")

    def install(self, spec, prefix):
        which("bash")("scripts/install", prefix)
