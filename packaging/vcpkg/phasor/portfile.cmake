# An overlay port: it builds the checkout that it lies in. In a registry, vcpkg_from_github() stands here.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS FEATURES infer PHASOR_BUILD_INFER)
vcpkg_find_acquire_program(PKGCONFIG)
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    ${FEATURE_OPTIONS}
    -DPHASOR_COMPILE_BY_FOLDER=ON
    -DPHASOR_BUILD_TESTS=OFF
    -DPHASOR_BUILD_BENCH=OFF
    "-DPKG_CONFIG_EXECUTABLE=${PKGCONFIG}"
)
vcpkg_cmake_install()
vcpkg_copy_pdbs()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/phasor)
# The configuration has moved from lib/cmake/phasor to share/phasor, where the models are.
vcpkg_replace_string("${CURRENT_PACKAGES_DIR}/share/phasor/phasorConfig.cmake"
                     "/../../../share/phasor/models" "/models")
vcpkg_fixup_pkgconfig()
if("infer" IN_LIST FEATURES)
  vcpkg_copy_tools(TOOL_NAMES infer AUTO_CLEAN)
endif()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/doc")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE" "${SOURCE_PATH}/infer/page/NOTICE")
