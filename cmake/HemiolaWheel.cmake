# For the wheel, which carries the libraries that it needs (tools/wheel): libarchive from its archive, without the reader of xar, and so without
# libxml2 and ICU, which are half of all that it would carry. Elsewhere, and where that does not link, the shared one.
include(CheckCXXSourceCompiles)
find_library(HEMIOLA_STATIC_ARCHIVE libarchive.a)
set(needed ${HEMIOLA_STATIC_ARCHIVE} ZLIB::ZLIB -l:liblzma.so.5 -l:libbz2.so.1.0 -l:libzstd.so.1 -l:libnettle.so.8)
if(HEMIOLA_STATIC_ARCHIVE)
  set(CMAKE_REQUIRED_LIBRARIES ${needed})
  set(CMAKE_REQUIRED_INCLUDES ${LibArchive_INCLUDE_DIRS})
  check_cxx_source_compiles("#include <archive.h>
    int main() {
      archive* one = archive_read_new();
      archive_read_support_filter_gzip(one);
      archive_read_support_format_raw(one);
      archive_read_support_format_tar(one);
      return archive_read_support_format_zip(one);
    }" HEMIOLA_ARCHIVE_IS_STATIC)
  unset(CMAKE_REQUIRED_LIBRARIES)
  unset(CMAKE_REQUIRED_INCLUDES)
endif()
if(HEMIOLA_ARCHIVE_IS_STATIC)
  list(REMOVE_AT needed 0)
  set_target_properties(LibArchive::LibArchive PROPERTIES IMPORTED_LOCATION ${HEMIOLA_STATIC_ARCHIVE} INTERFACE_LINK_LIBRARIES "${needed}")
  add_link_options(-Wl,--exclude-libs,ALL)  # its functions are hidden, as code that is not position independent has to be
endif()
