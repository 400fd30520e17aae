# trellis_version_script(<output>): ccl/api/trellis.map, and the names of exports.txt as the linker knows them.
function(trellis_version_script output)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.txt)
  file(STRINGS ${PROJECT_SOURCE_DIR}/cmake/exports.txt names REGEX "^[a-z]")
  set(patterns "")
  foreach(name IN LISTS names)
    # ccl::Group::run is _ZN7trellis3ccl5Group3runE...; const functions begin with _ZNK; a B follows a name whose result
    # is a string.
    set(mangled 7trellis)
    string(REPLACE "::" ";" parts "${name}")
    list(POP_BACK parts last)
    foreach(part IN LISTS parts)
      string(LENGTH ${part} length)
      string(APPEND mangled ${length}${part})
    endforeach()
    if(last STREQUAL "*")
      string(APPEND mangled "*")
    elseif(last MATCHES "^~")
      string(APPEND mangled "D*")
    else()
      string(LENGTH ${last} length)
      string(APPEND mangled "${length}${last}[EB]*")
    endif()
    string(APPEND patterns "    _ZN${mangled};\n    _ZNK${mangled};\n")
  endforeach()
  file(READ ${PROJECT_SOURCE_DIR}/ccl/api/trellis.map c_names)
  file(CONFIGURE OUTPUT ${output} @ONLY CONTENT "@c_names@TRELLIS_CXX_${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} {
  global:
@patterns@};
")
endfunction()
